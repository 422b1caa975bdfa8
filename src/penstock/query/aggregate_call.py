"""The call of an aggregate as the user wrote it, before a schema is known."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate

__all__ = ["Aggregate"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function, the SQL texts of its arguments and its options.

    ``function`` is the name of a native aggregate, or "sql" or "arrow" for a user-defined one, which
    then stands in ``definition``.
    """

    function: str
    arguments: tuple[str, ...]
    options: tuple[tuple[str, object], ...] = ()
    definition: "SqlAggregate | ArrowAggregate | None" = None

    def __str__(self) -> str:
        shown = [*self.arguments, *(f"{name}={value}" for name, value in self.options)]
        return f"{self.function}({', '.join(shown)})"
