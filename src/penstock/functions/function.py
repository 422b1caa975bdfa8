"""What a channel may evaluate: functions, with a form for each choice of argument types.

Users write Spark SQL. Inside a channel DuckDB evaluates it, if every function in it has a **form** for the
types at hand: the type that Spark gives, and SQL for DuckDB that has Spark's value for every argument, nulls,
NaN and errors included. A test holds every form against Spark. What has no form runs in Spark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from penstock.expressions import types

__all__ = [
    "ENDS",
    "FUNCTIONS",
    "GROUPS",
    "INTEGERS",
    "SECONDS",
    "Form",
    "Function",
    "Order",
    "define",
    "has_exact_double",
    "precision_of",
    "same_as_first",
]

INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
ENDS: Final = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
"""The first number that is too large for a type; the least that fits is its negative."""
SECONDS: Final = "(epoch_us({0}) - ((epoch_us({0}) % 1000000) + 1000000) % 1000000) // 1000000"
"""The whole seconds of a time, towards the past."""
GROUPS: Final = {
    "integer": INTEGERS,
    "real": (*INTEGERS, "float", "double", "decimal"),
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
"""The type of a result: fixed, or from the types of the arguments; None if the form is not for them."""

Order = Literal["strict", "divisor first", "all", "lazy", "short"]
"""Which arguments Spark evaluates, which decides whether one that raises is reached.

- ``strict``: one after the other, up to the first null; the result is null then.
- ``divisor first``: the same, but the second before the first.
- ``all``: every one.
- ``lazy``: those behind the first only if they are needed, and DuckDB does the same.
- ``short``: those behind the first only if they are needed, where DuckDB evaluates all; they may not raise.
"""


@dataclass(frozen=True)
class Form:
    """A function over arguments of certain types.

    - `takes`: the type or group of each argument; the last may end in `*`, for one or more of it.
    - `gives`: the type of the result, as Spark has it.
    - `sql`: DuckDB's SQL. `{0}` is the first argument and `{0:as}` the same cast to the result's type, which
      is `{type}`; with `{0:with}` numbers are widened to be compared. `{all}` are all arguments, `{rest}` all
      but the first, with the same endings.
    - `literals`: places of arguments that must be literals, and which are allowed.
    - `varying`: places of arguments that must not be literals: Spark takes those for narrower decimals.
    - `raises`: it raises for some values in ANSI mode, so without ANSI mode its meaning is another.
    - `zoned`: its value depends on the session's time zone; the SQL is for UTC.
    """

    takes: tuple[str, ...]
    gives: Gives
    sql: str
    literals: dict[int, Callable[[str], bool]] = field(default_factory=dict)
    varying: frozenset[int] = frozenset()
    raises: bool = False
    zoned: bool = False
    order: Order = "strict"

    def result(self, given: Sequence[str]) -> str | None:
        """The type of the result for these types of arguments, None if the form is not for them."""
        takes = list(self.takes)
        if takes and takes[-1].endswith("*"):
            last = takes.pop().removesuffix("*")
            takes += [last] * max(1, len(given) - len(takes))
        if len(takes) != len(given) or not all(map(_fits, given, takes)):
            return None
        return self.gives if isinstance(self.gives, str) else self.gives(given)


@dataclass(frozen=True)
class Function:
    """A scalar function or operator by its name in Spark, in lower case, with its forms.

    `written` is how a user writes it, with the arguments as `{0}`, `{1}`; None for a plain call.
    """

    name: str
    group: str
    forms: tuple[Form, ...]
    written: str | None = None
    note: str = ""

    def call(self, arguments: Sequence[str]) -> str:
        """The function with these arguments in Spark SQL.

        >>> FUNCTIONS["+"].call(["a", "b"]), FUNCTIONS["left"].call(["t", "3"])
        ('(a + b)', 'left(t, 3)')
        """
        if self.written is None:
            return f"{self.name}({', '.join(arguments)})"
        rest = ", ".join(arguments[1:])
        return f"({self.written.format(*arguments, rest=rest)})"


FUNCTIONS: Final[dict[str, Function]] = {}
"""Every function that a channel may evaluate."""


def define(group: str, names: str, *forms: Form, written: str | None = None, note: str = "") -> None:
    """Enter functions of one meaning, given by their names in one text."""
    for name in names.split():
        assert name not in FUNCTIONS, f"{name} is defined twice"
        FUNCTIONS[name] = Function(name, group, forms, written, note)


def same_as_first(given: Sequence[str]) -> str:
    """The type of the first argument."""
    return given[0]


def precision_of(decimal: str) -> tuple[int, int]:
    """Precision and scale of a decimal type.

    >>> precision_of("decimal(10,2)")
    (10, 2)
    """
    digits, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return int(digits), int(scale)


def has_exact_double(kind: str) -> bool:
    """Whether both engines give the same double for every value of a number's type.

    Of a decimal of up to 15 digits one division gives the nearest double; of more digits engines differ.
    """
    return kind in {*INTEGERS, "float", "double"} or (
        kind.startswith("decimal(") and precision_of(kind)[0] <= 15
    )


def _fits(given: str, wanted: str) -> bool:
    if given == "void":
        return wanted in {"plain", "any"}
    if wanted in GROUPS:
        return any(_fits(given, each) for each in GROUPS[wanted])
    if wanted == "decimal":
        return given.startswith("decimal(")
    return given == wanted or (wanted == "any" and types.is_atomic(given))
