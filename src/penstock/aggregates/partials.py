"""What one pane of one key keeps, and the two ways a value gets there.

A partial is stated once and formed where it is cheapest: as Spark SQL aggregates with the combine on the map
side (`Partial.combine`), or from raw rows inside the channel (`Partial.lift`). Both give the channel the same
columns, and the same merge takes over.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from penstock.aggregates.kinds import Count, Fold, Kind, Operation
from penstock.aggregates.merges import group
from penstock.aggregates.pools import StateMerger
from penstock.errors import BadAggregate
from penstock.expressions.functions import is_aggregate_name
from penstock.expressions.parsing import Tree, call_name, render, shared_scalar
from penstock.expressions.scalar import Expression, SqlColumn
from penstock.expressions.schema import TIME
from penstock.expressions.types import arrow_type

__all__ = [
    "ROWS",
    "Accumulated",
    "Accumulator",
    "Finish",
    "Inputs",
    "Lift",
    "Lowered",
    "PaneColumns",
    "Partial",
    "Taken",
    "arrow_of",
    "cast_as_spark",
    "form",
    "with_filter",
]

ROWS = "rows"
"""The partial that counts tuples; every pane has it first."""


class Finish(Protocol):
    """Makes one result column out of partial columns."""

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """The result, one value per row."""
        ...


Lowered = tuple[Finish, Any]
"""How a result is finished, and its Arrow type."""


@dataclass(frozen=True)
class Taken:
    """The partial is the result."""

    column: str

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """As it is."""
        return columns[self.column]

    def __str__(self) -> str:
        return self.column


class Lift(ABC):
    """Makes each raw row a partial of itself; the merge then forms the partials of groups."""

    @abstractmethod
    def columns(self, rows: Any) -> list[Any]:
        """Columns of one partial per raw row."""


@dataclass(frozen=True)
class _Ones(Lift):
    """Every row counts."""

    def columns(self, rows: Any) -> list[Any]:
        """A one for each row."""
        return [pa.array(np.ones(rows.num_rows, np.int64))]


@dataclass(frozen=True)
class _Valid(Lift):
    """A row counts when its value is not null."""

    input: str

    def columns(self, rows: Any) -> list[Any]:
        """One or zero."""
        return [rows[self.input].is_valid().cast(pa.int64())]


@dataclass(frozen=True)
class Inputs(Lift):
    """The values of a row are its partial, each cast to the type of its column."""

    names: tuple[str, ...]
    types: tuple[Any, ...]

    def columns(self, rows: Any) -> list[Any]:
        """The values, in the types of the partial."""
        return [cast_as_spark(rows[name], type_) for name, type_ in zip(self.names, self.types, strict=True)]


def cast_as_spark(column: Any, type_: Any) -> Any:
    """The column in another type; a bigint that no double can hold is rounded, as Spark does it.

    >>> cast_as_spark(pa.array([2**53 + 1]), pa.float64()).to_pylist()
    [9007199254740992.0]
    """
    return column.cast(type_, safe=not pa.types.is_floating(type_))


class Accumulator(StateMerger, Protocol):
    """An aggregate that forms states from the rows of many groups at once."""

    @property
    def split(self) -> bool:
        """Whether rows of one pane and key may be accumulated apart and merged in any order."""
        ...

    def accumulate(self, groups: NDArray[np.int64], n: int, *columns: Any) -> Any:
        """State of n groups from rows, of which row i belongs to group groups[i]."""
        ...

    def state_schema(self) -> Any:
        """The state's columns as Arrow holds them."""
        ...


@dataclass(frozen=True)
class Accumulated:
    """States accumulated over the rows of each group, in event-time order.

    `reason` names in the plan who needs the rows themselves.
    """

    aggregate: Accumulator
    inputs: tuple[str, ...]
    reason: str = "user-defined aggregates"

    def over_groups(self, rows: Any, groups: NDArray[np.int64], count: int) -> list[Any]:
        """One state per group."""
        order = np.lexsort((rows[TIME].to_numpy(zero_copy_only=False), groups))
        at = pa.array(order)
        return self._states(groups[order], count, [rows[name].take(at) for name in self.inputs])

    def over_lists(self, collected: Any) -> list[Any]:
        """One state per row of a column of lists of (time, inputs), as Spark collected them."""
        flat = collected.flatten()
        fields = [flat.field(place) for place in range(flat.type.num_fields)]
        names = dict.fromkeys([TIME, *self.inputs])
        rows = pa.RecordBatch.from_arrays(fields, names=list(names))
        lengths = pc.fill_null(pc.list_value_length(collected), 0).to_numpy(zero_copy_only=False)
        groups = np.repeat(np.arange(len(collected)), lengths)
        return _spread(groups, len(collected), lambda at, count: self.over_groups(rows, at, count))

    def _states(self, groups: NDArray[np.int64], count: int, columns: list[Any]) -> list[Any]:
        batch = self.aggregate.accumulate(groups, count, *columns)
        if batch.num_rows != count:
            raise BadAggregate(
                f"{type(self.aggregate).__name__}.accumulate() was given {count} groups and returned "
                f"{batch.num_rows} states; it must return one state for each group, in their order"
            )
        state = batch.cast(self.aggregate.state_schema())
        return [pa.array(np.ones(count, np.bool_)), *state.columns]


@dataclass(frozen=True)
class Partial:
    """One partial: its kind, its Spark SQL aggregates, and how raw rows become one, if they can.

    With `where` it is formed of the raw rows for which that input is true.
    """

    name: str
    kind: Kind
    combine: tuple[str, ...]
    lift: Lift | Accumulated | None
    where: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns in a segment."""
        types = self.kind.types
        return (
            (self.name,) if len(types) == 1 else tuple(f"{self.name}_{place}" for place in range(len(types)))
        )

    @property
    def wire(self) -> tuple[str, ...]:
        """Names of its columns as Spark delivers them, one for each expression of `combine`.

        States that are accumulated arrive as a list of input rows.
        """
        return self.columns if self.accumulated is None else (self.name,)

    @property
    def accumulated(self) -> Accumulated | None:
        """How it is accumulated from rows; None for a partial of single rows that merge."""
        return self.lift if isinstance(self.lift, Accumulated) else None

    @property
    def source(self) -> str:
        """What it is formed by, in words."""
        if self.accumulated is not None:
            return f"{self.accumulated.aggregate!r}.accumulate"
        return ", ".join(self.combine)

    @property
    def texts(self) -> tuple[str, ...]:
        """What each column holds, in words; a column's own name where there is nothing to add."""
        if self.accumulated is not None:
            aggregate = self.accumulated.aggregate
            return (
                f"{aggregate!r} known",
                *(f"{aggregate!r}.{each}" for each in aggregate.state_schema().names),
            )
        if len(self.columns) == 1 and self.name != ROWS:
            return (self.combine[0].replace("`", ""),)
        return self.columns

    def received(self, table: Any) -> list[Any]:
        """Its segment columns from what Spark delivered."""
        columns = [table[name].combine_chunks() for name in self.wire]
        return columns if self.accumulated is None else self.accumulated.over_lists(columns[0])

    def formed(self, rows: Any, groups: NDArray[np.int64], count: int) -> list[Any]:
        """Its segment columns of `count` groups, from raw rows of which row i is in groups[i]."""
        if self.where is not None:
            chosen = rows[self.where].fill_null(False)
            kept = groups[chosen.to_numpy(zero_copy_only=False)]
            return self.formed_sparsely(rows.filter(chosen), kept, count)
        return self._formed(rows, groups, count)

    def formed_sparsely(self, rows: Any, groups: NDArray[np.int64], count: int) -> list[Any]:
        """The same where some groups have no row; what their kind makes of nulls is a partial of nothing."""
        loaded = self.kind.load(_spread(groups, count, lambda at, known: self._formed(rows, at, known)))
        return loaded.store(loaded.lanes)

    def _formed(self, rows: Any, groups: NDArray[np.int64], count: int) -> list[Any]:
        if isinstance(self.lift, Accumulated):
            return self.lift.over_groups(rows, groups, count)
        assert self.lift is not None, self
        loaded = self.kind.load(self.lift.columns(rows))
        return loaded.store(loaded.merge.scatter(count, groups, loaded.lanes))


def _spread(
    groups: NDArray[np.int64], count: int, make: Callable[[NDArray[np.int64], int], list[Any]]
) -> list[Any]:
    """Columns made of the groups that have a row, with nulls for the others."""
    present, at = group(groups)
    if len(present) == count:
        return make(groups, count)
    place, absent = np.zeros(count, np.int64), np.ones(count, np.bool_)
    place[present], absent[present] = np.arange(len(present)), False
    index = pa.array(place, mask=absent)
    return [column.take(index) for column in make(at, len(present))]


@dataclass
class PaneColumns:
    """Collects the partials that the aggregates of one query need; equal partials are kept once.

    `time` is the event time in microseconds as SQL; `describe` tells the types of Spark SQL aggregates, None
    where a query is only explained. With `where` partials are formed of the tuples for which it is true.
    """

    time: str
    describe: Callable[[list[str]], list[str]] | None = None
    partials: dict[tuple[Kind, tuple[str, ...]], Partial] = field(default_factory=dict)
    inputs: dict[str, SqlColumn] = field(default_factory=dict)
    where: Expression | None = None

    def __post_init__(self) -> None:
        self.partials.setdefault((Count(), _ROWS.combine), _ROWS)

    def filtered(self, where: Expression) -> "PaneColumns":
        """The same pane, for an aggregate that takes only the tuples for which a condition is true."""
        return replace(self, where=where)

    def partial(self, kind: Kind, combine: Iterable[str], lift: Lift | Accumulated | None) -> Partial:
        """The partial of this kind that these Spark SQL aggregates form; without a lift only Spark can."""
        texts, where = tuple(combine), None
        if self.where is not None:
            texts, where = tuple(with_filter(each, self.where.sql) for each in texts), self.input(self.where)
        made = Partial(f"p{len(self.partials)}", kind, texts, lift, where)
        return self.partials.setdefault((kind, texts), made)

    def counted(self, value: Expression | None = None) -> str:
        """The column with the number of tuples, or of those with a value that is not null."""
        if value is None or not value.nullable:
            return ROWS if self.where is None else self.partial(Count(), _ROWS.combine, _Ones()).name
        return self.partial(Count(), (f"count({value.sql})",), _Valid(self.input(value))).name

    def folded(self, operation: Operation, value: Expression, type_: Any) -> str:
        """The column with the values folded by an SQL aggregate that is its own merge."""
        cast = "cast({} AS double)" if pa.types.is_float64(type_) and operation == "sum" else "{}"
        combine = f"{operation}({cast.format(value.sql)})"
        lift = Inputs((self.input(value),), (type_,))
        return self.partial(Fold(operation, type_), (combine,), lift).name

    def input(self, value: Expression) -> str:
        """The column of raw rows that holds an expression."""
        column = SqlColumn(f"_ps_in{len(self.inputs)}", value.sql, arrow_of(value))
        return self.inputs.setdefault(value.sql, column).name

    def event_time(self) -> str:
        """The column of raw rows that holds the event time."""
        return self.inputs.setdefault(self.time, SqlColumn(TIME, self.time, pa.int64())).name


_ROWS = Partial(ROWS, Count(), ("count(1)",), _Ones())


def with_filter(text: str, condition: str) -> str:
    """Spark SQL with a condition for every aggregate in it.

    >>> with_filter("coalesce(avg(x), 0)", "y > 1")
    'COALESCE(AVG(x) FILTER(WHERE y > 1), 0)'
    """
    given = shared_scalar(condition)

    def filtered(node: Tree) -> Tree:
        if isinstance(node, exp.Filter):
            both = exp.and_(node.expression.this.copy(), given.copy())
            return exp.Filter(this=node.this.copy(), expression=exp.Where(this=both))
        if isinstance(node, exp.WithinGroup) or is_aggregate_name(call_name(node)):
            return exp.Filter(this=node.copy(), expression=exp.Where(this=given.copy()))
        return node

    return render(shared_scalar(text).transform(filtered))


def arrow_of(value: Expression) -> Any:
    """The Arrow type of an expression; null where it is not known yet."""
    return pa.null() if value.type is None else arrow_type(value.type)


def form(
    partials: tuple[Partial, ...], rows: Any, keys: NDArray[np.int64], panes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[list[Any]]]:
    """Partials of raw rows, one per pane and key: the panes, the keys, and the columns of each partial."""
    width = int(keys.max()) + 1 if len(keys) else 1
    base = int(panes.min()) if len(panes) else 0
    cells, at = group((panes - base) * width + keys)
    columns = [partial.formed(rows, at, len(cells)) for partial in partials]
    return cells // width + base, cells % width, columns
