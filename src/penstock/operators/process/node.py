"""A keyed stateful function: keys, the columns of its state and its results, timeout and order of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from penstock.aggregates.aggregate import stable_text
from penstock.expressions.durations import words
from penstock.expressions.schema import Column, Schema
from penstock.operators.exchange import Form
from penstock.operators.kernel import Describe
from penstock.operators.names import Named, shown_keys
from penstock.operators.operator import Inputs, Operator
from penstock.operators.process.processor import Processor, VisitFunction
from penstock.routing.resources import Resources

if TYPE_CHECKING:
    from penstock.operators.process.kernel import ProcessKernel

__all__ = ["Order", "Process"]

Order = Literal["event", "arrival"]
_ONE_STATE: Final = Resources.of("CLL")


@dataclass(frozen=True, slots=True)
class Process(Operator):
    """A function over the rows of each key and its state.

    ``given`` are the columns of the rows; ``time`` names the event time of rows and results. ``timeout`` is
    in microseconds. The function may look at every column, so it reads them all. No stage shares its
    channels: where all input has ended, timers fire at any time, and nothing beside it could wait for them.
    """

    stateful: ClassVar[bool] = True

    keys: Named
    function: Processor | VisitFunction
    given: Schema
    state: Schema
    result: Schema
    timeout: int | None
    order: Order
    time: str

    @property
    def name(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __str__(self) -> str:
        parts = [self.name]
        parts += [f"timeout {words(self.timeout)}"] if self.timeout is not None else []
        parts += ["in order of arrival"] if self.order == "arrival" else []
        return f"{shown_keys(self.keys).lstrip('.')}.process({'; '.join(parts)})"

    def meaning(self) -> list[object]:
        """Keys, the function with its settings, the columns of rows, state and results, timeout and order."""
        keys: list[object] = [[name, each.sql] for name, each in self.keys]
        function = self.function
        named = getattr(function, "__qualname__", type(function).__qualname__)
        settings = sorted(
            (name, stable_text(value)) for name, value in getattr(function, "__dict__", {}).items()
        )
        columns = [
            [[each.name, each.type] for each in schema.columns]
            for schema in (self.given, self.state, self.result)
        ]
        return ["process", keys, named, settings, columns, self.timeout, self.order]

    def schema(self, inputs: Inputs) -> Schema:
        """The columns of the results: their event time, the keys, what was declared."""
        time = Column(self.time, inputs[0].time_type, nullable=False)
        keys = tuple(Column(name, each.type, each.nullable) for name, each in self.keys)
        return Schema((time, *keys, *self.result.columns))

    def event_time(self, inputs: Inputs) -> str:
        """The time of the row or timer that caused a result."""
        return self.time

    def pinned(self, inputs: Inputs) -> tuple[str, ...]:
        """The time of a result."""
        return (self.time,)

    def keys_at(self, place: int) -> tuple[tuple[str, str], ...]:
        """The keys of group_by."""
        return tuple((name, each.sql) for name, each in self.keys)

    def ahead(self) -> int | None:
        """A result has the time of its timer; the function may set that to any time."""
        return self.timeout

    def compile(self, time_type: str, ports: Sequence[Describe]) -> "ProcessKernel":
        """Rows that wait, states and timers of keys."""
        from penstock.operators.process.kernel import compile_process  # noqa: PLC0415 -- it needs this class

        return compile_process(self, time_type, ports[0])

    def resources(self, form: Form = "rows") -> Resources:
        """One state for each key, whatever its frequency."""
        return _ONE_STATE

    def words(self) -> list[str]:
        """How the function is called, in which order, its timers and its state."""
        return [
            f"function: {self._function()}",
            f"order: {self._order()}",
            f"timers: {self._timers()}",
            f"state: {self._state()}",
        ]

    def _function(self) -> str:
        if isinstance(self.function, Processor):
            return f"{self.name} over Arrow, called with the rows of many keys at once"
        return f"{self.name}, one Python call for each row; a ps.Processor takes many at once"

    def _order(self) -> str:
        if self.order == "arrival":
            return "as rows arrive, sorted within an epoch; results depend on how epochs were cut"
        return "event time; a row waits in a segment until the frontier has passed it"

    def _timers(self) -> str:
        if self.timeout is None:
            return "those that the function sets, fired when the frontier has passed them"
        return f"a key without a row for {words(self.timeout)} of event time is told so"

    def _state(self) -> str:
        columns = ", ".join(f"{each.name} {each.type}" for each in self.state.columns)
        return f"{columns} of every key, in segments sorted by hash; an epoch writes the keys that it touches"
