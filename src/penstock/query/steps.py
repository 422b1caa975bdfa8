"""The stateless steps before and after the windows, and how names are checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.errors import BadName
from penstock.query.expressions import Expression, column, scalar
from penstock.query.schema import RESERVED_PREFIX, Column, Schema

__all__ = ["Select", "Step", "Where", "check_names", "named_expressions", "schema_of_columns"]

Named = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Where:
    """Keep the tuples for which the condition is true."""

    expression: Expression

    def __str__(self) -> str:
        return f"where({self.expression})"


@dataclass(frozen=True, slots=True)
class Select:
    """Make these columns; ``hidden`` ones are carried on for windows, out of sight of later steps."""

    columns: Named
    hidden: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"select({', '.join(name for name, _ in self.columns)})"


Step = Where | Select


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
