"""FILTER and DISTINCT of any aggregate: definitions around another one, with Spark's meaning.

A filter is an argument more, the last one. Every partial that the aggregate asks for is formed of the tuples
for which it is true, so it needs nothing of the aggregate. A pane without such a tuple holds no partial.
DISTINCT keeps the set of the arguments of each pane, and the aggregate is formed from the set when a window
is closed. Where repeated tuples change nothing (`ignores_repeats`) it is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, Parameter
from penstock.aggregates.partials import Finish, Lowered, PaneColumns, Partial, arrow_of, with_filter
from penstock.aggregates.sets import OfOneRow, Sets, collected_set
from penstock.errors import BadAggregate, WrongType
from penstock.expressions.scalar import Expression, SqlColumn
from penstock.expressions.schema import TIME

__all__ = ["COMPARABLE", "Distinct", "Filtered", "modified"]

COMPARABLE: Final = Parameter(
    "values that can be compared", lambda type_: "map<" not in type_, "take its keys or a value of it"
)


def modified(aggregate: Aggregate, where: str | None, distinct: bool) -> Aggregate:  # noqa: FBT001 -- as users give it
    """The aggregate over the tuples for which `where` is true, with `distinct` over distinct arguments."""
    definition, arguments = aggregate.definition, aggregate.arguments
    if distinct and not definition.ignores_repeats:
        definition = Distinct(definition)
    if where is None:
        return Aggregate(definition, arguments)
    if not isinstance(where, str):
        raise BadAggregate(
            f"{definition.name}() got where={where!r}; give a condition as SQL text, such as 'speed > 3'"
        )
    return Aggregate(Filtered(definition), (*arguments, where))


@dataclass(frozen=True, slots=True)
class _Around(Definition):
    """What a definition around another one says as that one does."""

    inner: Definition

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the aggregate."""
        return self.inner.name

    @property
    def never_null(self) -> bool:  # type: ignore[override]
        """As the aggregate: without tuples it gives what it gives over nulls."""
        return self.inner.never_null

    @property
    def keeps_values(self) -> bool:  # type: ignore[override]
        """As the aggregate."""
        return self.inner.keeps_values

    @property
    def ignores_repeats(self) -> bool:  # type: ignore[override]
        """As the aggregate."""
        return self.inner.ignores_repeats

    @property
    def options(self) -> tuple[tuple[str, object], ...]:
        """Those of the aggregate."""
        return self.inner.options

    @property
    def agreement(self) -> Agreement:  # type: ignore[override]
        """As the aggregate."""
        return self.inner.agreement

    @property
    def error_bound(self) -> float:
        """As the aggregate."""
        return self.inner.error_bound


@dataclass(frozen=True, slots=True)
class Filtered(_Around):
    """An aggregate over the tuples for which its last argument is true."""

    def meaning(self) -> object:
        """That it has a filter, which is among the arguments."""
        return ["filter", self.inner.meaning()]

    def check(self, arguments: Sequence[Expression], written: Sequence[str]) -> None:
        """The arguments as the aggregate wants them, and a condition."""
        self.inner.check(arguments[:-1], written[:-1])
        if arguments[-1].type not in {None, "boolean"}:
            raise WrongType(
                f"{self.name}() got where={written[-1]!r} of type {arguments[-1].type}; give a condition: "
                "compare it with something"
            )

    def shown(self, arguments: Sequence[object]) -> str:
        """As SQL writes it."""
        return f"{self.inner.shown(arguments[:-1])} FILTER (WHERE {arguments[-1]})"

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """That of the aggregate."""
        return self.inner.result_type(given[:-1])

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The partials of the aggregate, formed of fewer tuples."""
        return self.inner.lower(arguments[:-1], pane.filtered(arguments[-1]))

    def estimates(self, columns: Sequence[Sequence[Any]]) -> bool:
        """As the aggregate, over the values that it takes."""
        return self.inner.estimates(_taken(columns))

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """As the aggregate, over the values that it takes."""
        return self.inner.measured_error(found, _taken(columns))

    def spark_sql(self, arguments: Sequence[str], time: str) -> str:
        """That of the aggregate with a FILTER."""
        return with_filter(self.inner.spark_sql(arguments[:-1], time), arguments[-1])


@dataclass(frozen=True, slots=True)
class Distinct(_Around):
    """An aggregate over the distinct values of its arguments, taken together where there are several."""

    @property
    def keeps_values(self) -> bool:  # type: ignore[override]
        """State grows with the number of distinct values of a pane."""
        return True

    def meaning(self) -> object:
        """That it is distinct."""
        return ["distinct", self.inner.meaning()]

    def check(self, arguments: Sequence[Expression], written: Sequence[str]) -> None:
        """Arguments that can be compared, of an aggregate that can be formed in a channel."""
        self.inner.check(arguments, written)
        if not arguments:
            raise BadAggregate(f"{self.name}() got distinct=True without an expression; give one")
        for each, text in zip(arguments, written, strict=True):
            if each.type is not None and not COMPARABLE.accepts(each.type):
                raise WrongType(
                    f"{self.name}() with DISTINCT needs {COMPARABLE.words}, got {text} {each.type}; "
                    f"{COMPARABLE.hint}"
                )
        pane = PaneColumns(f"`{TIME}`")
        self.inner.lower(arguments, pane)
        if any(partial.lift is None for partial in pane.partials.values()):
            raise BadAggregate(
                f"{self.name}() with DISTINCT is not supported, since only Spark can form its partials; "
                "percentile() and count_distinct() are exact and take DISTINCT, or group by the value first"
            )

    def estimates(self, columns: Sequence[Sequence[Any]]) -> bool:
        """As the aggregate."""
        return self.inner.estimates(columns)

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """As the aggregate; what it does not show, repeated values do not either."""
        return self.inner.measured_error(found, columns)

    def shown(self, arguments: Sequence[object]) -> str:
        """As SQL writes it."""
        return self.inner.shown([f"DISTINCT {arguments[0]}", *arguments[1:]])

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """That of the aggregate."""
        return self.inner.result_type(given)

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """The set of the arguments; of several together also where some are null."""
        lift = OfOneRow(tuple(map(pane.input, arguments)), tuple(map(arrow_of, arguments)), whole=True)
        combine = collected_set([each.sql for each in arguments], whole=True)
        held = pane.partial(Sets(lift.element), (combine,), lift)
        inner = PaneColumns(f"`{TIME}`", pane.describe)
        finish, type_ = self.inner.lower(arguments, inner)
        inputs = tuple(inner.inputs.get(each.sql) for each in arguments)
        return OfMembers(held.name, inputs, tuple(inner.partials.values()), finish), type_

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """That of the aggregate with DISTINCT."""
        return self.inner.distinct_sql(arguments)


@dataclass(frozen=True)
class OfMembers:
    """An aggregate formed from the members of sets, as from raw rows, and finished."""

    column: str
    inputs: tuple[SqlColumn | None, ...]
    partials: tuple[Partial, ...]
    finish: Finish

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """One value for each set; an aggregate over nothing where there is none."""
        sets = columns[self.column]
        lengths = pc.list_value_length(sets).fill_null(0).to_numpy(zero_copy_only=False)
        groups = np.repeat(np.arange(len(sets), dtype=np.int64), lengths)
        flat = sets.flatten()
        values = [flat] if len(self.inputs) == 1 else flat.flatten()
        given = {TIME: pa.array(np.zeros(len(flat), np.int64))}
        given |= {known.name: value for known, value in zip(self.inputs, values, strict=True) if known}
        rows = pa.RecordBatch.from_arrays(list(given.values()), names=list(given))
        formed: dict[str, Any] = {}
        for partial in self.partials:
            formed.update(zip(partial.columns, partial.formed_sparsely(rows, groups, len(sets)), strict=True))
        return self.finish(formed)

    def __str__(self) -> str:
        return f"{self.finish} over the set {self.column}"


def _taken(columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The values in rows of which the last one is true."""
    *values, chosen = columns
    return [[each for each, held in zip(column, chosen, strict=True) if held] for column in values]
