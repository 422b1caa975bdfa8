"""The channels of a function over whole windows: raw rows kept once, a call for each window that closes.

A window is closed when the frontier has passed its end, by the channel that computes it and by no other. Its
rows are in the order of event time, and rows of one time in that of their content, so what a function gets
does not depend on the order of arrival, on how epochs were cut, or on the number of channels. A closing costs
a sort of the rows that the closing windows hold; the windows themselves are slices of it, without a copy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import BadApply
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.event_order import in_event_order, or_never
from penstock.operators.exchange import KEY, TIME, ByWindow, Exchange, SqlColumn
from penstock.operators.kernel import (
    Advance,
    Channel,
    Describe,
    Kernel,
    Progress,
    Seen,
    StagePosition,
    WindowEnds,
)
from penstock.operators.poison import Refuse, reason_of, record_of
from penstock.operators.whole_windows.node import WholeWindows, WindowInfo
from penstock.routing import WindowChannels, WindowShape
from penstock.routing.window_ids import window_range
from penstock.state.keys import Ordered, normal_keys, number_keys
from penstock.state.segments import Segment
from penstock.state.time_table import OpenTimeTable, TimeTable

__all__ = ["Call", "WholeWindowKernel", "WholeWindowProgress", "calls_for", "compile_whole_windows"]

_ROWS: Final = "rows"
_MOST_ENDS: Final = 10_000
_MANY: Final = 65_536
"""Rows of results that are handed on together."""
_ALL: Final = 0
"""What a window costs is learnt of all windows together."""

Places = NDArray[np.int64]


@dataclass(frozen=True)
class WholeWindowProgress:
    """The first window that is not closed, None before the first frontier."""

    first_open: int | None = None

    @classmethod
    def of(cls, position: StagePosition) -> "WholeWindowProgress":
        """From plain values."""
        return cls(**position.progress)

    def to_json(self) -> Progress:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Call:
    """A window of a key: its number, that of the key, and the range of its rows among the sorted ones."""

    window: int
    key: int
    start: int
    stop: int


@dataclass(frozen=True)
class WholeWindowKernel(Kernel):
    """A function over windows in channels.

    `keys` and `columns` are sent, as SQL over the port; a column that is a key or the time is sent once.
    `time` is the type in which people read times.
    """

    operator: WholeWindows
    keys: tuple[SqlColumn, ...]
    columns: tuple[SqlColumn, ...]
    time: Any

    # What it sends, keeps and gives.

    @property
    def shape(self) -> WindowShape:
        """Where windows lie."""
        window = self.operator.window
        return WindowShape(window.size, window.slide, window.offset)

    @property
    def schema(self) -> Any:
        """The bounds of the window, the keys, what the function makes; TIME is the window's start."""
        fields = [("window_start", self.time), ("window_end", self.time)]
        fields += [(name, key.type) for name, key in zip(self.operator.key_names, self.keys, strict=True)]
        made = [(each.name, each.type) for each in self.operator.made.arrow()]
        return pa.schema([*fields, *made, (TIME, pa.int64())])

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Rows by their keys, or by the windows that they are in."""
        columns = (*self.keys, SqlColumn(TIME, TIME, pa.int64()), *self.columns)
        operator = self.operator
        if operator.partitioning == "keys":
            return (Exchange(columns, keys=self._key_names),)
        fixed = operator.partitioning == "windows" or operator.batch is not None
        return (Exchange(columns, windows=ByWindow(self.shape, operator.batch or 1, fixed)),)

    @property
    def tables(self) -> tuple[TimeTable]:
        """Rows that an open window still needs."""
        labels = dict(zip(self._key_names, self.operator.key_names, strict=True))
        keys = self._key_names if self.operator.partitioning == "keys" else ()
        return (TimeTable(_ROWS, keys=keys, labels=labels, lives=(0, self.shape.size)),)

    # How far it comes.

    def bound(self, position: StagePosition, port: int) -> int | None:
        """Where the first open window starts: a row before it is in closed windows alone.

        Where a row counts in all of its windows or in none, it is where the last closed window ends.
        """
        del port
        first_open = WholeWindowProgress.of(position).first_open
        if first_open is None:
            return None
        ended = self.shape.start_of(first_open - 1) + self.shape.size
        # Between windows that lie apart a row is in none, and not late.
        return ended if self.operator.late == "drop" else min(self.shape.start_of(first_open), ended)

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """A window closes when the frontier has passed its end; the first open one never goes back."""
        opened = WholeWindowProgress.of(before).first_open
        opens = self._first_open(opened, frontiers[0], drained, known=seen.rows or seen.state)
        promise = None if opens is None else self.shape.start_of(opens)
        if drained is not None:
            promise = drained if promise is None else max(drained, promise)
        idle = not seen.rows and (opens == opened or not seen.state)
        return Advance(StagePosition(frontiers, promise, WholeWindowProgress(opens).to_json()), idle=idle)

    def _first_open(
        self, before: int | None, frontier: int | None, drained: int | None, *, known: bool
    ) -> int | None:
        shape = self.shape
        if drained is not None:
            if not known:
                return before
            opens = (drained - 1 - shape.offset) // shape.slide + 1
        elif frontier is None:
            return before
        else:
            opens = (frontier - shape.offset - shape.size) // shape.slide + 1
        return opens if before is None else max(opens, before)

    def ends(self, before: StagePosition, after: StagePosition) -> WindowEnds:
        """The windows between the first that was open and the first that is."""
        opened, opens = (WholeWindowProgress.of(each).first_open for each in (before, after))
        shape = self.shape
        if opens is None:
            return WindowEnds((), shape.size)
        first = opens - _MOST_ENDS if opened is None else max(opened, opens - _MOST_ENDS)
        return WindowEnds([shape.start_of(each) + shape.size for each in range(first, opens)], shape.size)

    # What a channel does.

    def step(self, channel: Channel) -> tuple[Segment, ...]:
        """Call the function for the windows that the frontier has passed, and keep the rows of the others."""
        opened, opens = (WholeWindowProgress.of(each).first_open for each in (channel.before, channel.after))
        new = None if channel.new[0] is None else channel.new[0].select(self._sent.names).cast(self._sent)
        held = self.tables[0].open(channel.store, self._sent, channel.before.frontiers)
        if opens is not None and (opened is None or opens > opened):
            self._close(channel, held, new, opened, opens)
        until = or_never(None if opens is None else self.shape.start_of(opens))
        return tuple(held.close_by_time(until, new))

    def _close(self, channel: Channel, held: OpenTimeTable, new: Any, opened: int | None, opens: int) -> None:
        """Call the function for the windows from `opened` up to `opens` that this channel computes."""
        shape = self.shape
        since = or_never(None if opened is None else shape.start_of(opened))
        until = shape.start_of(opens - 1) + shape.size
        found = held.between(since, until)
        if new is not None:
            times = new[TIME].to_numpy()
            found.append(new.filter(pa.array((times >= since) & (times < until))))
        rows = pa.concat_tables([self._sent.empty_table(), *found]).combine_chunks()
        if not rows.num_rows:
            return
        numbers, keys = number_keys(normal_keys(rows.select(list(self._key_names))).columns, rows.num_rows)
        times = rows[TIME].to_numpy()
        order = np.lexsort((times, numbers))
        groups = numbers[order]
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        dense = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
        shown = self._shown(rows)
        order = in_event_order(Ordered(order, dense, first), times, shown).order
        calls = calls_for(shape, times[order], groups, opened, opens, channel.windows, channel.number)
        batch = shown.take(pa.array(order)).combine_chunks()
        caller = _Caller(self, batch, [each.to_pylist() for each in keys], channel.refuse)
        if channel.meter is None:
            caller.run(calls, channel)
            return
        _, wall, cpu = channel.meter.timed(partial(caller.run, calls, channel))
        if calls:
            channel.meter.note(_ALL, len({each.window for each in calls}), wall, cpu)

    def results(self, calls: Sequence[Call], made: Sequence[Any], keys: Sequence[Sequence[Any]]) -> Any:
        """What the function made for each call, with the bounds of its window and its keys."""
        counts = [each.num_rows for each in made]
        windows = np.repeat(np.array([each.window for each in calls], np.int64), counts)
        start = windows * self.shape.slide + self.shape.offset
        bounds = [pa.array(each).cast(self.time) for each in (start, start + self.shape.size)]
        number = pa.array(np.repeat(np.array([each.key for each in calls], np.int64), counts))
        own = [pa.array(values, key.type).take(number) for values, key in zip(keys, self.keys, strict=True)]
        table = pa.concat_tables(made).combine_chunks()
        return pa.table([*bounds, *own, *table.columns, pa.array(start)], schema=self.schema)

    def _shown(self, rows: Any) -> Any:
        """Rows as they came, from what is sent of them."""
        columns = [rows[held].cast(self.time) if held == TIME else rows[held] for held in self._held.values()]
        return pa.table(columns, names=list(self._held))

    @property
    def _held(self) -> dict[str, str]:
        """The columns of a row, and the name under which each is sent and kept."""
        held = {
            each.name.lower(): KEY.format(place)
            for place, (_, key) in enumerate(self.operator.keys)
            for each in self.operator.given.columns
            if key.sql == quoted(each.name)
        }
        held[self.operator.time.lower()] = TIME
        return {name: held.get(name.lower(), name) for name in self.operator.given.names}

    @property
    def _key_names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    @property
    def _sent(self) -> Any:
        """The columns of a row in a channel and in a segment."""
        return self.exchanges[0].schema


@dataclass(frozen=True, eq=False)
class _Caller:
    """Calls the function with slices of the sorted rows; `keys` are the values of each key by its number."""

    kernel: WholeWindowKernel
    rows: Any
    keys: Sequence[Sequence[Any]]
    refuse: Refuse | None

    # Asked for each window, and the same for all.

    @cached_property
    def _operator(self) -> WholeWindows:
        return self.kernel.operator

    @cached_property
    def _takes_info(self) -> bool:
        return self.kernel.operator.takes_info

    @cached_property
    def _schema(self) -> Any:
        return self.kernel.operator.made.arrow()

    def run(self, calls: Sequence[Call], channel: Channel) -> None:
        """Call it for each window, and hand on what it makes, many windows at a time."""
        taken: list[Call] = []
        made: list[Any] = []
        waiting = 0
        for each in calls:
            found = self._made(each)
            if found is None or not found.num_rows:
                continue
            taken.append(each)
            made.append(found)
            waiting += found.num_rows
            if waiting >= _MANY:
                channel.emit(self.kernel.results(taken, made, self.keys))
                taken, made, waiting = [], [], 0
        if made:
            channel.emit(self.kernel.results(taken, made, self.keys))

    def _made(self, call: Call) -> Any:
        """What the function makes of a window, None if it raises and its rows are refused."""
        rows = self.rows.slice(call.start, call.stop - call.start)
        given = (self._info(call), rows) if self._takes_info else (rows,)
        try:
            found = self._operator.function(*given)
        except Exception as error:
            reason = f"{reason_of(str(self._operator), error)} for {self._info(call)}"
            if self.refuse is None:
                raise BadApply(
                    f"{reason}; correct the function, leave such rows out with where() before it, or set "
                    'them aside with start(on_error="set aside")'
                ) from error
            for row in rows.to_pylist():
                self.refuse(reason, record_of(row))
            return None
        return self._checked(found)

    def _checked(self, found: Any) -> Any:
        schema = self._schema
        if isinstance(found, pa.RecordBatch):
            found = pa.Table.from_batches([found])
        elif isinstance(found, Mapping):
            found = _table_of(found, schema, self._operator)
        if not isinstance(found, pa.Table):
            raise BadApply(
                f"{self._operator} returned {type(found).__name__}; return a pyarrow.Table, or a dict of "
                "columns"
            )
        if found.schema.equals(schema):
            return found
        lacking = [name for name in schema.names if name not in found.schema.names]
        if lacking:
            raise BadApply(
                f"{self._operator} returned no column {lacking[0]!r}; its schema has "
                f"{', '.join(schema.names)}"
            )
        try:
            return found.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise BadApply(
                f"{self._operator} returned {found.schema}, which cannot be held as declared: {error}"
            ) from error

    def _info(self, call: Call) -> WindowInfo:
        shape = self.kernel.shape
        start = shape.start_of(call.window)
        bounds = [
            pa.scalar(each, pa.int64()).cast(self.kernel.time).as_py() for each in (start, start + shape.size)
        ]
        named = zip(self._operator.key_names, self.keys, strict=True)
        return WindowInfo(bounds[0], bounds[1], {name: values[call.key] for name, values in named})


def _table_of(columns: Mapping[str, Any], schema: Any, name: WholeWindows) -> Any:
    """A dict of columns as a table; a value that is no column is one of a single row."""
    made = {}
    for key, values in columns.items():
        type_ = schema.field(key).type if key in schema.names else None
        plain = isinstance(values, str | bytes) or not hasattr(values, "__len__")
        if isinstance(values, pa.Scalar):
            values, plain = values.as_py(), True  # noqa: PLW2901 -- the same value, as Python has it
        if isinstance(values, pa.Array | pa.ChunkedArray):
            made[key] = values
            continue
        try:
            made[key] = pa.array([values] if plain else values, type_)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise BadApply(f"{name} returned {key!r}, which cannot be held as declared: {error}") from error
    try:
        return pa.table(made)
    except pa.ArrowInvalid as error:
        raise BadApply(f"{name} returned columns of different lengths: {error}") from error


def calls_for(  # noqa: PLR0913, PLR0917 -- the rows, the windows and who computes them
    shape: WindowShape,
    times: Places,
    keys: Places,
    opened: int | None,
    opens: int,
    windows: WindowChannels | None = None,
    channel: int = 0,
) -> list[Call]:
    """The windows below `opens` that hold rows, of rows sorted by key and time, each with its range of rows.

    Windows before `opened` are closed already; of the others those count that `windows` has on `channel`.
    Costs O(rows) and O(log rows) for each window.

    >>> found = calls_for(WindowShape(4, 2), np.array([1, 5, 6]), np.array([0, 0, 0]), None, 2)
    >>> [(each.window, each.start, each.stop) for each in found]
    [(-1, 0, 1), (0, 0, 1), (1, 1, 2)]
    """
    found: list[Call] = []
    edges = np.append(np.flatnonzero(np.diff(keys, prepend=keys[0] - 1)), len(keys)).tolist()
    for start, stop in pairwise(edges):
        own = times[start:stop]
        numbers = np.fromiter(_windows_with(shape, own, opened, opens), np.int64)
        if windows is not None:
            numbers = numbers[windows.of(numbers) == channel]
        begins = numbers * shape.slide + shape.offset
        first, last = np.searchsorted(own, begins), np.searchsorted(own, begins + shape.size)
        key = int(keys[start])
        found += [
            Call(number, key, start + one, start + other)
            for number, one, other in zip(numbers.tolist(), first.tolist(), last.tolist(), strict=True)
        ]
    return found


def _windows_with(shape: WindowShape, times: Places, opened: int | None, opens: int) -> Iterator[int]:
    """The windows in a range that hold one of these ascending times, each once and ascending."""
    first, last = window_range(shape, times)
    first = first if opened is None else np.maximum(first, opened)
    last = np.minimum(last, opens - 1)
    # Both rise with time, so the new windows of a row are those after the last of all rows before it.
    before = np.maximum.accumulate(np.append(first[:1] - 1, last))[:-1]
    first = np.maximum(first, before + 1)
    for one, other in zip(*(each[first <= last].tolist() for each in (first, last)), strict=True):
        yield from range(one, other + 1)


def compile_whole_windows(operator: WholeWindows, time_type: str, describe: Describe) -> WholeWindowKernel:
    """The kernel of a function over windows, with what Spark says about the types."""
    texts = [key.sql for _, key in operator.keys]
    apart = {*texts, quoted(operator.time)}
    names = [name for name in operator.given.names if quoted(name) not in apart]
    found = [arrow_type(type_) for type_, _ in describe([*texts, *map(quoted, names)])]
    sent = [*zip(map(KEY.format, range(len(texts))), texts, strict=False)]
    sent += [(name, quoted(name)) for name in names]
    columns = tuple(SqlColumn(name, text, type_) for (name, text), type_ in zip(sent, found, strict=True))
    return WholeWindowKernel(operator, columns[: len(texts)], columns[len(texts) :], arrow_type(time_type))
