"""A function over the rows of a window: what it takes, what it makes, and what it is told."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.aggregates.aggregate import stable_text
from penstock.errors import BadApply
from penstock.expressions.schema import Column, Schema, schema_of
from penstock.operators.aggregated import WINDOW_BOUNDS
from penstock.operators.names import Named, check_names
from penstock.operators.operator import InputRelation

__all__ = ["WindowFunction", "WindowInfo", "window_function"]


@dataclass(frozen=True)
class WindowInfo:
    """The window that a function is called for: its bounds, and the values of the keys by name."""

    start: datetime
    end: datetime
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function of a user over rows with the columns `given`, which makes rows with the columns `made`.

    `time` names the event time. The function may look at every column, so it reads them all.
    """

    function: Callable[..., Any]
    given: Schema
    made: Schema
    time: str

    @property
    def name(self) -> str:
        """The function's own name."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def takes_info(self) -> bool:
        """Whether the function wants the window itself, in front of its rows."""
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return False
        places = [
            each
            for each in signature.parameters.values()
            if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} and each.default is each.empty
        ]
        return len(places) == 2

    def meaning(self) -> list[object]:
        """The function with its settings, and the columns of rows and results."""
        named = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        settings = sorted(
            (name, stable_text(value)) for name, value in getattr(self.function, "__dict__", {}).items()
        )
        columns = [[[each.name, each.type] for each in schema.columns] for schema in (self.given, self.made)]
        return [named, settings, columns]

    def results(self, keys: Named, time_type: str) -> Schema:
        """The columns of results: the bounds of the window, the keys, what the function makes."""
        bounds = tuple(Column(name, time_type, nullable=False) for name in WINDOW_BOUNDS)
        own = tuple(Column(name, each.type, each.nullable) for name, each in keys)
        return Schema(bounds + own + self.made.columns)


def window_function(
    relation: InputRelation, keys: Named, function: Callable[..., Any], schema: Any
) -> WindowFunction:
    """The function that a user gives to `apply`, checked."""
    if isinstance(function, type) or not callable(function):
        raise BadApply(
            f"apply() got {function!r}; give a function from a pyarrow.Table of rows to a table or a "
            "dict of columns"
        )
    made = schema_of(schema)
    check_names([*WINDOW_BOUNDS, *(name for name, _ in keys), *made.names])
    return WindowFunction(function, relation.schema, made, relation.time)
