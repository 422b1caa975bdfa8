"""Aggregates that users define in Python over Arrow: states that rows accumulate into and that merge."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import Aggregate, AggregateLike, Definition, is_name, stable_text
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Accumulated, Lowered, PaneColumns
from penstock.aggregates.pools import States
from penstock.errors import BadAggregate, QueryError
from penstock.expressions import types
from penstock.expressions.scalar import Expression

if TYPE_CHECKING:
    import numpy as np

__all__ = ["ArrowAggregate"]


class ArrowAggregate(AggregateLike):
    """An aggregate in Python over Arrow; subclass it, and call the subclass with SQL texts.

    A subclass names the columns of its ``state`` and the type of its ``result`` in SQL types.
    ``accumulate`` sees the rows of a group in event-time order, ``merge`` gets the state of the earlier
    pane on the left. Tuples of one pane that arrive in different epochs are merged in the order of the
    epochs, so a result that depends on the order within a pane depends on where epochs were cut.

    One channel does all the work of a hot key, unless the class says ``split = True``: that the order of rows
    within a pane does not change the result. Then the rows of a hot key are dealt out over several channels,
    which accumulate their shares apart, and the shares of one pane are merged in any order.

    ``where`` is a condition on the tuples that it takes; without one of them in a group the result is null.
    ``distinct=True`` hands over each combination of arguments once, in no particular order, without nulls if
    there is one argument.

    >>> class Seen(ArrowAggregate):
    ...     state = {"rows": "bigint"}
    ...     result = "bigint"
    ...     def accumulate(self, groups, n, *columns): ...
    ...     def merge(self, left, right): ...
    ...     def finish(self, state): ...
    >>> Seen("speed")
    Seen('speed')
    """

    state: ClassVar[Mapping[str, str]]
    result: ClassVar[str]
    split: ClassVar[bool] = False
    arguments: tuple[str, ...]
    where: str | None = None
    distinct: bool = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "state"):
            _check_state(cls.__qualname__, cls.state)
        if hasattr(cls, "result"):
            _check_type(f"{cls.__qualname__}.result", cls.result)

    def __init__(self, *arguments: str, where: str | None = None, distinct: bool = False) -> None:
        for wanted in ("state", "result"):
            if not hasattr(self, wanted):
                raise BadAggregate(f"{type(self).__qualname__} has no {wanted}; set it as a class attribute")
        if not arguments or not all(isinstance(each, str) for each in arguments):
            raise BadAggregate(
                f"{type(self).__qualname__}{arguments!r}; give one or more SQL texts, such as 'speed'"
            )
        self.arguments = arguments
        # What is not given stays with the class, so that it is no setting of the object.
        if where is not None:
            self.where = where
        if distinct:
            self.distinct = distinct

    @abstractmethod
    def accumulate(
        self, groups: "np.ndarray[tuple[int], np.dtype[np.int64]]", n: int, *columns: pa.Array
    ) -> pa.RecordBatch:
        """State of n groups from rows, of which row i belongs to group groups[i]."""

    @abstractmethod
    def merge(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """State of both sides, row by row; the left is the earlier."""

    @abstractmethod
    def finish(self, state: pa.RecordBatch) -> pa.Array:
        """The result of each row of state."""

    def as_aggregate(self) -> Aggregate:
        """The call that this object stands for."""
        plain = copy(self)
        for name in ("where", "distinct"):
            vars(plain).pop(name, None)
        return modified(Aggregate(ArrowDefinition(plain), self.arguments), self.where, self.distinct)

    def state_schema(self) -> pa.Schema:
        """The state's columns as Arrow holds them."""
        return pa.schema([(name, types.arrow_type(kind)) for name, kind in self.state.items()])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.arguments))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True, slots=True)
class ArrowDefinition(Definition):
    """The definition behind an object of a user's class."""

    name = "arrow"
    takes = ()

    aggregate: ArrowAggregate

    @property
    def options(self) -> tuple[tuple[str, object], ...]:
        """None: settings belong to the user's object."""
        return ()

    def shown(self, arguments: Sequence[object]) -> str:
        """By the name of the user's class."""
        return f"{type(self.aggregate).__name__}({', '.join(map(str, arguments))})"

    def meaning(self) -> object:
        """The class, its state and the settings of the object."""
        kind = type(self.aggregate)
        settings = sorted((name, stable_text(value)) for name, value in vars(self.aggregate).items())
        return [kind.__qualname__, sorted(kind.state.items()), kind.result, settings]

    def result_type(self, _given: Sequence[str | None]) -> str:
        """As the class says."""
        return types.normalise(self.aggregate.result)

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """Rows are accumulated in the channel; Spark collects them into lists if it forms other partials."""
        schema = self.aggregate.state_schema()
        pane.event_time()
        inputs = tuple(pane.input(value) for value in arguments)
        values = ", ".join(f"{value.sql} AS a{place}" for place, value in enumerate(arguments))
        rows = f"collect_list(struct({pane.time} AS t, {values}))"
        lift = Accumulated(self.aggregate, inputs)
        partial = pane.partial(States(self.aggregate, schema), (rows,), lift)
        type_ = types.arrow_type(self.aggregate.result)
        return Finished(self.aggregate, partial.columns, schema, type_), type_


@dataclass(frozen=True)
class Finished:
    """A user-defined aggregate's own finish; the first of the columns says where there is a state."""

    aggregate: ArrowAggregate
    columns: Sequence[str]
    schema: Any
    type: Any

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Checked for its length and cast to the declared type; null where a filter has left no tuple."""
        held, *states = (columns[name] for name in self.columns)
        state = pa.RecordBatch.from_arrays(states, schema=self.schema)
        held = held.fill_null(False)
        if held.false_count:
            place = pc.subtract(pc.cumulative_sum(held.cast(pa.int64())), 1)
            return self._finished(state.filter(held)).take(pc.if_else(held, place, None))
        return self._finished(state)

    def _finished(self, state: Any) -> Any:
        result = self.aggregate.finish(state)
        assert len(result) == state.num_rows, (
            f"{type(self.aggregate).__name__}.finish() changed the number of rows"
        )
        return result.cast(self.type)

    def __str__(self) -> str:
        return f"{self.aggregate!r}.finish"


def _check_state(owner: str, state: object) -> None:
    if not isinstance(state, Mapping) or not state:
        raise BadAggregate(f"{owner}.state is {state!r}; give its columns, such as {{'total': 'double'}}")
    for name, kind in state.items():
        if not is_name(name):
            raise BadAggregate(f"{owner}.state has the column {name!r}; names have to be identifiers")
        _check_type(f"{owner}.state[{name!r}]", kind)


def _check_type(where: str, kind: object) -> None:
    if not isinstance(kind, str):
        raise BadAggregate(f"{where} is {kind!r}; give a SQL type, such as 'double'")
    try:
        types.normalise(kind)
    except QueryError as error:
        raise BadAggregate(f"{where}: {error}") from error
