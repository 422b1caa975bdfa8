"""A plain function called for one key and one event at a time: simple, but one Python call per row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import BadProcess
from penstock.operators.process.events import Horizon
from penstock.operators.process.processor import NO_TIMER, Visit, VisitFunction
from penstock.operators.process.touched import KeysAfter, Shapes, Touched

__all__ = ["visited"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def visited(
    function: VisitFunction, touched: Touched, timeout: int | None, horizon: Horizon, shapes: Shapes
) -> KeysAfter:
    """Results, states and timers after all events up to the horizon."""
    visiting = _Visiting(function, timeout, horizon, shapes)
    events = touched.events
    rows = touched.rows.take(pa.array(events.rows)).to_pylist()
    times = events.times.tolist()
    shown = _shown(events.times, shapes.time)
    bounds = np.searchsorted(events.groups, np.arange(len(touched.known) + 1)).tolist()
    keys, states = _keys(visiting.name, touched.keys), touched.state.to_pylist()
    after: list[Mapping[str, Any] | None] = []
    timers: list[int] = []
    for number, key in enumerate(keys):
        own = slice(bounds[number], bounds[number + 1])
        given = zip(times[own], shown[own], rows[own], strict=True)
        state = states[number] if touched.known[number] else None
        left, timer = visiting.key(number, key, state, int(touched.timers[number]), given)
        after.append(left)
        timers.append(timer)
    return KeysAfter(
        visiting.results_table(),
        np.array(visiting.groups, np.int64),
        np.array(visiting.times, np.int64),
        _table(visiting.name, "state", [each or {} for each in after], shapes.state),
        np.array([each is not None for each in after], np.bool_),
        np.array(timers, np.int64),
    )


@dataclass
class _Visiting:
    function: VisitFunction
    timeout: int | None
    horizon: Horizon
    shapes: Shapes
    results: list[Mapping[str, Any]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def key(self, number: int, key: Any, state: Any, timer: int, rows: Iterator[Any]) -> tuple[Any, int]:
        """All events of one key, in order; its state and its timer after them."""
        limit = NO_TIMER - 1 if self.horizon.ended else self.horizon.frontier
        row = next(rows, None)
        while True:
            if timer <= min(limit, NO_TIMER if row is None else row[0]):
                over = timer > self.horizon.frontier and row is None
                (when,) = _shown(np.array([timer]), self.shapes.time)
                state, follows = self._visit(number, key, timer, when, None, state)
                if follows <= timer:
                    raise BadProcess(
                        f"{self.name}: a timer that fires at {when} sets the next one not after it; "
                        "set a later time, or None"
                    )
                timer = follows
                if over:
                    # After the end of all input, a chain of timers that set timers would never end.
                    return state, timer
            elif row is not None:
                time, when, values = row
                state, follows = self._visit(number, key, time, when, values, state)
                if self.timeout is None:
                    timer = max(follows, time)
                else:
                    timer = max(time + self.timeout, -NO_TIMER if timer == NO_TIMER else timer)
                row = next(rows, None)
            else:
                return state, timer

    def results_table(self) -> Any:
        """All results so far."""
        return _table(self.name, "results", self.results, self.shapes.result)

    def _visit(  # noqa: PLR0913, PLR0917 -- what a visit is
        self, number: int, key: Any, time: int, when: datetime, row: Any, state: Any
    ) -> tuple[Any, int]:
        visit = self.function(key, when, row, state)
        if not isinstance(visit, Visit):
            raise BadProcess(f"{self.name} returned {type(visit).__name__}; return a ps.Visit")
        if self.timeout is not None and visit.timer is not None:
            raise BadProcess(f"{self.name} sets a timer although there is a timeout; use only one of them")
        self.results += visit.results
        self.groups += [number] * len(visit.results)
        self.times += [time] * len(visit.results)
        return visit.state, NO_TIMER if visit.timer is None else _micros(visit.timer)


def _keys(name: str, table: Any) -> list[Any]:
    try:
        columns = [column.to_pylist() for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise BadProcess(
            f"{name}: a key is outside of the years 1 to 9999, beyond which Python has no dates; write a "
            "ps.Processor, which gets Arrow columns, leave such rows out with where(), or cast the key"
        ) from error
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _shown(times: Any, type_: Any) -> list[Any]:
    found: list[Any] = pa.array(times).cast(type_).to_pylist()
    return found


def _micros(time: datetime) -> int:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _table(name: str, part: str, rows: list[Any], schema: Any) -> Any:
    known = set(schema.names)
    for row in rows:
        if not row.keys() <= known:
            unknown = sorted(row.keys() - known)
            raise BadProcess(
                f"{name}: {part} has {unknown[0]!r}, which is not declared; the columns are "
                f"{', '.join(schema.names)}"
            )
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadProcess(f"{name}: {part} cannot be held as declared: {error}") from error
