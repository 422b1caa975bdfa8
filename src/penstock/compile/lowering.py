"""From the aggregates of a query to partials and finishes; equal partials are kept once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

import pyarrow as pa

from penstock.compile import finishes, lifts
from penstock.compile.duck import check, translate
from penstock.compile.partials import Column, Partial
from penstock.expressions.types import arrow_type
from penstock.panes import Boundary, Count, Custom, Fold, FrequentItems, Hll, Kind, Kll, Spread
from penstock.query import ArrowAggregate, Expression, ResolvedAggregate, SqlAggregate

__all__ = ["ROWS", "Lowering", "Result"]

ROWS = "rows"

Describe = Callable[[list[str]], list[str]]
_Finished = tuple[finishes.Finish, Any]


@dataclass(frozen=True)
class Result:
    """One aggregate of the result."""

    name: str
    finish: finishes.Finish
    type: Any


@dataclass
class Lowering:
    """Collects what the aggregates of one query need, in the order of their first use.

    `time` is the event time in microseconds as SQL; `describe` tells the types of SQL aggregates.
    """

    time: str
    describe: Describe | None
    partials: dict[tuple[Kind, tuple[str, ...]], Partial] = field(default_factory=dict)
    inputs: dict[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._partial(Count(), ("count(1)",), lifts.Ones(), name=ROWS)

    def lower(self, aggregate: ResolvedAggregate) -> Result:
        """How the aggregate's value is finished from partials, which are added as needed."""
        lower: Callable[[ResolvedAggregate], _Finished] = getattr(self, f"_{aggregate.function}")
        return Result(aggregate.name, *lower(aggregate))

    def _count(self, aggregate: ResolvedAggregate) -> _Finished:
        return finishes.Taken(self._counted(*aggregate.arguments)), pa.int64()

    def _sum(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        type_ = _sum_type(_arrow(value))
        return finishes.Taken(self._folded("sum", value, type_)), type_

    def _avg(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        exact = pa.types.is_decimal(_arrow(value))
        total = self._folded("sum", value, _sum_type(_arrow(value)) if exact else pa.float64())
        return finishes.Average(total, self._counted(value)), pa.float64()

    def _min(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        return finishes.Taken(self._folded("min", value, _arrow(value))), _arrow(value)

    def _max(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        return finishes.Taken(self._folded("max", value, _arrow(value))), _arrow(value)

    def _var(self, aggregate: ResolvedAggregate) -> _Finished:
        return self._variance(aggregate, root=False)

    def _stddev(self, aggregate: ResolvedAggregate) -> _Finished:
        return self._variance(aggregate, root=True)

    def _variance(self, aggregate: ResolvedAggregate, *, root: bool) -> _Finished:
        (value,) = aggregate.arguments
        double = f"cast({value.sql} AS double)"
        combine = (
            f"cast(count({value.sql}) AS double)",
            f"coalesce(avg({double}), 0D)",
            f"coalesce(var_pop({double}) * count({value.sql}), 0D)",
        )
        partial = self._partial(Spread(), combine, lifts.Triple(self._input(value)))
        return finishes.Variance(partial.columns[0], partial.columns[2], root), pa.float64()

    def _first(self, aggregate: ResolvedAggregate) -> _Finished:
        return self._boundary(aggregate, "min")

    def _last(self, aggregate: ResolvedAggregate) -> _Finished:
        return self._boundary(aggregate, "max")

    def _boundary(self, aggregate: ResolvedAggregate, extreme: str) -> _Finished:
        (value,) = aggregate.arguments
        pair = f"{extreme}(struct({self.time} AS t, {value.sql} AS v)) FILTER (WHERE {value.sql} IS NOT NULL)"
        kind = Boundary("first" if extreme == "min" else "last", _arrow(value))
        self._time()
        partial = self._partial(kind, (f"({pair}).t", f"({pair}).v"), lifts.Pair(self._input(value)))
        return finishes.Taken(partial.columns[1]), _arrow(value)

    def _count_distinct(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        kind = Hll(int(_option(aggregate, "precision")))
        partial = self._partial(kind, (f"hll_sketch_agg({_hashable(value)}, {kind.precision})",), None)
        return finishes.Distinct(partial.name, kind), pa.int64()

    def _quantile(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        kind = Kll(int(_option(aggregate, "k")))
        sketch = f"kll_sketch_agg_double(cast({value.sql} AS double), {kind.size})"
        partial = self._partial(kind, (sketch,), None)
        return finishes.Quantile(partial.name, kind, float(_option(aggregate, "q"))), pa.float64()

    def _top_k(self, aggregate: ResolvedAggregate) -> _Finished:
        (value,) = aggregate.arguments
        strings = pa.types.is_string(_arrow(value))
        capacity = int(_option(aggregate, "capacity"))
        kind = FrequentItems(max(3, ceil(log2(capacity / 0.75))), strings)
        item = value.sql if strings else f"cast({value.sql} AS bigint)"
        held = f"approx_top_k_accumulate({item}, {capacity}) FILTER (WHERE {value.sql} IS NOT NULL)"
        partial = self._partial(kind, (f"({held}).sketch",), None)
        finish = finishes.TopItems(partial.name, kind, int(_option(aggregate, "k")))
        return finish, finish.type

    def _sql(self, aggregate: ResolvedAggregate) -> _Finished:
        definition = aggregate.definition
        assert isinstance(definition, SqlAggregate)
        partial_sql = definition.partial_sql(aggregate.arguments)
        described = self.describe(list(partial_sql.values())) if self.describe else []
        types = [arrow_type(each) for each in described] or [pa.null()] * len(partial_sql)
        schema = pa.schema(zip(partial_sql, types, strict=True))
        names = {}
        for name, sql in partial_sql.items():
            operation: Any = dict(definition.merge)[name]
            names[name] = self._partial(Fold(operation, schema.field(name).type), (sql,), None).name
        finish = finishes.Evaluated(translate(definition.finish), names)
        if not described:
            return finish, pa.null()
        return finish, check(finish.select, schema, definition.finish).field("value").type

    def _arrow(self, aggregate: ResolvedAggregate) -> _Finished:
        definition = aggregate.definition
        assert isinstance(definition, ArrowAggregate)
        schema = definition.state_schema()
        self._time()
        inputs = tuple(self._input(value) for value in aggregate.arguments)
        values = ", ".join(f"{value.sql} AS a{place}" for place, value in enumerate(aggregate.arguments))
        rows = f"collect_list(struct({self.time} AS t{', ' if values else ''}{values}))"
        partial = self._partial(Custom(definition, schema), (rows,), lifts.Accumulated(definition, inputs))
        type_ = arrow_type(definition.result)
        return finishes.Finished(definition, partial.columns[1:], schema, type_), type_

    def _counted(self, value: Expression | None = None) -> str:
        if value is None or not value.nullable:
            return ROWS
        return self._partial(Count(), (f"count({value.sql})",), lifts.Valid(self._input(value))).name

    def _folded(self, operation: Any, value: Expression, type_: Any) -> str:
        cast = "cast({} AS double)" if pa.types.is_float64(type_) and operation == "sum" else "{}"
        combine = f"{operation}({cast.format(value.sql)})"
        return self._partial(Fold(operation, type_), (combine,), lifts.Single(self._input(value), type_)).name

    def _partial(
        self,
        kind: Kind,
        combine: tuple[str, ...],
        lift: lifts.Lift | lifts.Accumulated | None,
        name: str = "",
    ) -> Partial:
        known = self.partials.get((kind, combine))
        if known is None:
            known = Partial(name or f"p{len(self.partials)}", kind, combine, lift)
            self.partials[kind, combine] = known
        return known

    def _input(self, value: Expression) -> str:
        column = Column(f"_ps_in{len(self.inputs)}", value.sql, _arrow(value))
        return self.inputs.setdefault(value.sql, column).name

    def _time(self) -> None:
        self.inputs.setdefault(self.time, Column(lifts.TIME, self.time, pa.int64()))


def _arrow(value: Expression) -> Any:
    return pa.null() if value.type is None else arrow_type(value.type)


def _sum_type(type_: Any) -> Any:
    if pa.types.is_integer(type_):
        return pa.int64()
    if pa.types.is_decimal(type_):
        return pa.decimal128(min(type_.precision + 10, 38), type_.scale)
    return pa.float64()


def _option(aggregate: ResolvedAggregate, name: str) -> Any:
    return dict(aggregate.options)[name]


def _hashable(value: Expression) -> str:
    """Spark hashes integers, strings and bytes into a HyperLogLog; other values go by their text."""
    fits = value.type in {"int", "bigint", "string", "binary"}
    return value.sql if fits else f"cast({value.sql} AS string)"
