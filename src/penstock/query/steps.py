"""The stateless operators, and how names are checked."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import BadName
from penstock.expressions.scalar import Expression, column, scalar
from penstock.expressions.schema import RESERVED_PREFIX, Column, Schema

__all__ = [
    "Branch",
    "Map",
    "Named",
    "Select",
    "Step",
    "Where",
    "check_names",
    "named_expressions",
    "schema_of_columns",
]

Named = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Where:
    """Keep the tuples for which the condition is true."""

    expression: Expression

    def __str__(self) -> str:
        return f"where({self.expression})"


@dataclass(frozen=True, slots=True)
class Branch:
    """One output of a split: the tuples for which this condition is the first that is true.

    ``place`` counts from 0; the place after the last condition takes the tuples for which none is.
    """

    conditions: tuple[Expression, ...]
    place: int

    @property
    def sql(self) -> str:
        """The branch as one condition; null is not true, so it falls through."""
        before = [f"NOT coalesce({each.sql}, false)" for each in self.conditions[: self.place]]
        own = [f"({each.sql})" for each in self.conditions[self.place : self.place + 1]]
        return " AND ".join(before + own)

    def __str__(self) -> str:
        return f"split({', '.join(map(str, self.conditions))})[{self.place}]"


@dataclass(frozen=True, slots=True)
class Select:
    """Make these columns."""

    columns: Named

    def __str__(self) -> str:
        return f"select({', '.join(name for name, _ in self.columns)})"


@dataclass(frozen=True, slots=True)
class Map:
    """Call a function with record batches of ``given`` columns; it makes ``made`` ones, row by row.

    ``kept`` columns pass by unchanged.
    """

    function: Callable[[Any], Any]
    given: Schema
    made: Schema
    kept: tuple[str, ...]

    def __str__(self) -> str:
        return f"map({getattr(self.function, '__name__', type(self.function).__name__)})"


Step = Where | Branch | Select | Map


def named_expressions(names: Iterable[str], expressions: Mapping[str, str], schema: Schema) -> Named:
    """Columns taken by name, then expressions under new names; no name twice."""
    taken = tuple((schema.column(name).name, column(name, schema)) for name in names)
    made = tuple((name, scalar(text, schema)) for name, text in expressions.items())
    check_names(name for name, _ in taken + made)
    return taken + made


def check_names(names: Iterable[str]) -> None:
    """Raise BadName for a name that is reserved, empty or there twice."""
    seen: set[str] = set()
    for name in names:
        lowered = name.lower()
        if not name or lowered.startswith(RESERVED_PREFIX):
            raise BadName(f"name {name!r}: empty and {RESERVED_PREFIX!r} names are reserved; choose another")
        if lowered in seen:
            raise BadName(f"two columns would have the name {name!r}; rename one of them")
        seen.add(lowered)


def schema_of_columns(columns: Named) -> Schema:
    """The schema that named expressions make."""
    return Schema(tuple(Column(name, each.type, each.nullable) for name, each in columns))
