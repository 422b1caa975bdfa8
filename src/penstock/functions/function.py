"""What a channel may evaluate: forms of functions, each certified against Spark for its types of arguments.

Users write Spark SQL. Inside a channel DuckDB evaluates it, where every function in it has a **form** for the
types at hand: the type that Spark gives, and SQL for DuckDB that has Spark's value for every argument, nulls,
NaN and errors included. Tests hold every form against Spark. What has no form runs in Spark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.expressions import types

__all__ = [
    "FUNCTIONS",
    "INTEGERS",
    "Form",
    "Function",
    "Gives",
    "define",
    "precision_of",
    "same_as_first",
]

INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")

GROUPS: Final = {
    "integer": INTEGERS,
    "small": ("tinyint", "smallint", "int"),
    "number": (*INTEGERS, "float", "double", "decimal"),
    "real": (*INTEGERS, "double"),
    "plain": (
        *INTEGERS,
        "float",
        "double",
        "decimal",
        "string",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
    ),
}
"""Names for several types in `Form.takes`; `decimal` stands for every precision and scale."""

Gives = str | Callable[[Sequence[str]], str | None]
"""The type of a result: fixed, or from the types of the arguments; None if this form does not fit them."""


@dataclass(frozen=True)
class Form:
    """A function over arguments of certain types.

    - `takes`: the type or group of each argument; the last may end in `*`, for one or more of it.
    - `gives`: the type of the result, as Spark has it.
    - `sql`: DuckDB's SQL; `{0}` is the first argument, `{type}` the result's type, `{all}` all arguments.
    - `literals`: places of arguments that must be literals, and what is allowed for each.
    - `same`: all arguments of the group must have one type.
    - `raises`: it raises in ANSI mode for some values, so without ANSI mode its meaning is another.
    - `zoned`: its value depends on the session's time zone; the SQL is for UTC.
    """

    takes: tuple[str, ...]
    gives: Gives
    sql: str
    literals: dict[int, Callable[[str], bool]] = field(default_factory=dict)
    same: bool = False
    raises: bool = False
    zoned: bool = False

    def result(self, given: Sequence[str]) -> str | None:
        """The type of the result for these types of arguments, None if the form is not for them."""
        takes = list(self.takes)
        if takes and takes[-1].endswith("*"):
            last = takes.pop().removesuffix("*")
            takes += [last] * max(1, len(given) - len(takes))
        if len(takes) != len(given) or not all(map(_fits, given, takes)):
            return None
        if self.same and len(set(given)) > 1:
            return None
        return self.gives if isinstance(self.gives, str) else self.gives(given)


@dataclass(frozen=True)
class Function:
    """A scalar function or operator by its name in Spark, in lower case, with its forms."""

    name: str
    group: str
    forms: tuple[Form, ...]
    note: str = ""


FUNCTIONS: Final[dict[str, Function]] = {}
"""Every function that a channel may evaluate."""


def define(group: str, names: str, *forms: Form, note: str = "") -> None:
    """Enter functions of the same meaning, given by their names in one text."""
    for name in names.split():
        assert name not in FUNCTIONS, f"{name} is defined twice"
        FUNCTIONS[name] = Function(name, group, forms, note)


def same_as_first(given: Sequence[str]) -> str:
    """The type of the first argument."""
    return given[0]


def precision_of(decimal: str) -> tuple[int, int]:
    """Precision and scale of a decimal type, or of an integer type as Spark widens it to one.

    >>> precision_of("decimal(10,2)"), precision_of("int")
    ((10, 2), (10, 0))
    """
    widths = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
    if decimal in widths:
        return widths[decimal], 0
    digits, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return int(digits), int(scale)


def _fits(given: str, wanted: str) -> bool:
    if wanted in GROUPS:
        return any(_fits(given, each) for each in GROUPS[wanted])
    if wanted == "decimal":
        return given.startswith("decimal(")
    return given == wanted or (wanted == "any" and types.is_atomic(given))
