"""Calls of a function with the rows of windows: what is sent of rows, and what comes of each call.

Rows are in the order of event time, and rows of one time in that of their content, so what a function gets
does not depend on the order of arrival, on how epochs were cut, or on the number of channels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import BadApply
from penstock.expressions.schema import quoted
from penstock.expressions.types import arrow_type
from penstock.operators.blame import reason_of, unless_row_fault
from penstock.operators.exchange import KEY, TIME, SqlColumn
from penstock.operators.kernel import Describe
from penstock.operators.names import Named, arrow_types
from penstock.operators.poison import Refuse, record_of
from penstock.operators.whole_windows.function import WindowFunction, WindowInfo

__all__ = ["Call", "Caller", "WholeRows", "whole_rows"]

_MANY: Final = 65_536
"""Rows of results that are handed on together."""


@dataclass(frozen=True)
class Call:
    """A window of a key: its bounds, the number of the key, and the range of its rows among sorted ones."""

    begins: int
    ends: int
    key: int
    start: int
    stop: int


@dataclass(frozen=True)
class WholeRows:
    """What is sent of the rows that a function takes.

    `keys` and `columns` are SQL over the port; a column that is a key or the time is sent once, and `held`
    says under which name. `names` are those of the keys, and `time` is the type in which people read times.
    """

    function: WindowFunction
    names: tuple[str, ...]
    keys: tuple[SqlColumn, ...]
    columns: tuple[SqlColumn, ...]
    held: tuple[tuple[str, str], ...]
    time: Any

    @property
    def sent(self) -> tuple[SqlColumn, ...]:
        """All columns on their way and in segments."""
        return (*self.keys, SqlColumn(TIME, TIME, pa.int64()), *self.columns)

    @property
    def schema(self) -> Any:
        """The same as an Arrow schema."""
        return pa.schema([(each.name, each.type) for each in self.sent])

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the keys on their way and in segments."""
        return tuple(key.name for key in self.keys)

    @property
    def labels(self) -> dict[str, str]:
        """What keys are called in front of people."""
        return dict(zip(self.key_names, self.names, strict=True))

    def results(self, time: str) -> Any:
        """The columns of results, of which `time`, one of the bounds, is the event time and the first."""
        other = "window_end" if time == "window_start" else "window_start"
        fields = [(time, self.time), (other, self.time)]
        fields += [(name, key.type) for name, key in zip(self.names, self.keys, strict=True)]
        made = [(each.name, each.type) for each in self.function.made.arrow()]
        return pa.schema([*fields, *made, (TIME, pa.int64())])

    def shown(self, rows: Any) -> Any:
        """Rows as they came, from what is sent of them."""
        columns = [rows[held].cast(self.time) if held == TIME else rows[held] for _, held in self.held]
        return pa.table(columns, names=[name for name, _ in self.held])


def whole_rows(function: WindowFunction, keys: Named, time_type: str, describe: Describe) -> WholeRows:
    """What is sent of rows, with what Spark says about the types."""
    texts = [key.sql for _, key in keys]
    apart = {*texts, quoted(function.time)}
    names = [name for name in function.given.names if quoted(name) not in apart]
    found = arrow_types(keys, names, describe)
    sent = [*zip(map(KEY.format, range(len(texts))), texts, strict=False)]
    sent += [(name, quoted(name)) for name in names]
    columns = tuple(SqlColumn(name, text, type_) for (name, text), type_ in zip(sent, found, strict=True))
    once = {text: KEY.format(place) for place, text in enumerate(texts)} | {quoted(function.time): TIME}
    held = tuple((name, once.get(quoted(name), name)) for name in function.given.names)
    shown = tuple(name for name, _ in keys)
    own, others = columns[: len(texts)], columns[len(texts) :]
    return WholeRows(function, shown, own, others, held, arrow_type(time_type))


@dataclass(frozen=True, eq=False)
class Caller:
    """Calls a function with slices of `rows`, which are sorted and as they came.

    `keys` are the values of each key by its number; results have the given `schema`. `text` is the operator
    as a user would write it, for errors. `refuse` takes the rows of windows for which the function raises;
    without it the error is raised.
    """

    sent: WholeRows
    schema: Any
    text: str
    rows: Any
    keys: Sequence[Any]
    refuse: Refuse | None

    # Asked for each window, and the same for all.

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return self.sent.function.function

    @cached_property
    def _takes_info(self) -> bool:
        return self.sent.function.takes_info

    @cached_property
    def _made_as(self) -> Any:
        return self.sent.function.made.arrow()

    def run(self, calls: Sequence[Call], emit: Callable[[Any], None]) -> None:
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
                emit(self._results(taken, made))
                taken, made, waiting = [], [], 0
        if made:
            emit(self._results(taken, made))

    def _results(self, calls: Sequence[Call], made: Sequence[Any]) -> Any:
        """What the function made for each call, with the bounds of its window and its keys."""
        counts = [each.num_rows for each in made]
        times = {
            name: np.repeat(np.array(values, np.int64), counts)
            for name, values in (
                ("window_start", [each.begins for each in calls]),
                ("window_end", [each.ends for each in calls]),
            )
        }
        bounds = [pa.array(times[name]).cast(self.sent.time) for name in self.schema.names[:2]]
        number = pa.array(np.repeat(np.array([each.key for each in calls], np.int64), counts))
        own = [values.take(number) for values in self.keys]
        table = pa.concat_tables(made).combine_chunks()
        time = pa.array(times[self.schema.names[0]])
        return pa.table([*bounds, *own, *table.columns, time], schema=self.schema)

    def _made(self, call: Call) -> Any:
        """What the function makes of a window, None if it raises and its rows are refused."""
        rows = self.rows.slice(call.start, call.stop - call.start)
        given = (self._info(call), rows) if self._takes_info else (rows,)
        try:
            found = self._function(*given)
        except Exception as error:
            unless_row_fault(self.text, error)
            reason = f"{reason_of(self.text, error)} for {self._info(call)}"
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
        schema = self._made_as
        if isinstance(found, pa.RecordBatch):
            found = pa.Table.from_batches([found])
        elif isinstance(found, Mapping):
            found = _table_of(found, schema, self.text)
        if not isinstance(found, pa.Table):
            raise BadApply(
                f"{self.text} returned {type(found).__name__}; return a pyarrow.Table, or a dict of columns"
            )
        if found.schema.equals(schema):
            return found
        lacking = [name for name in schema.names if name not in found.schema.names]
        if lacking:
            raise BadApply(
                f"{self.text} returned no column {lacking[0]!r}; its schema has {', '.join(schema.names)}"
            )
        try:
            return found.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise BadApply(
                f"{self.text} returned {found.schema}, which cannot be held as declared: {error}"
            ) from error

    def _info(self, call: Call) -> WindowInfo:
        bounds = [
            pa.scalar(each, pa.int64()).cast(self.sent.time).as_py() for each in (call.begins, call.ends)
        ]
        named = zip(self.sent.names, self._values, strict=True)
        return WindowInfo(bounds[0], bounds[1], {name: values[call.key] for name, values in named})

    @cached_property
    def _values(self) -> list[list[Any]]:
        """The keys as Python has them."""
        try:
            return [each.to_pylist() for each in self.keys]
        except (OverflowError, ValueError) as error:
            raise BadApply(
                f"{self.text}: a key is outside of the years 1 to 9999, beyond which Python has no dates; "
                "leave such rows out with where(), or cast the key to text or a number"
            ) from error


def _table_of(columns: Mapping[str, Any], schema: Any, text: str) -> Any:
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
            raise BadApply(f"{text} returned {key!r}, which cannot be held as declared: {error}") from error
    try:
        return pa.table(made)
    except pa.ArrowInvalid as error:
        raise BadApply(f"{text} returned columns of different lengths: {error}") from error
