"""What each native aggregate takes and gives."""

import re
from typing import Final

from penstock.errors import WrongType
from penstock.expressions import types

__all__ = ["result_type"]

_NUMBERS: Final = frozenset({"sum", "avg", "var", "stddev", "quantile"})
_DOUBLES: Final = frozenset({"avg", "var", "stddev", "quantile"})


def result_type(function: str, given: str | None, expression: str = "its input") -> str | None:
    """The type of a native aggregate over an input of a type; None in is None out, unless it does not matter.

    >>> result_type("sum", "decimal(10,2)"), result_type("top_k", "int")
    ('decimal(20,2)', 'array<struct<item:bigint,count:bigint>>')
    """
    if given is not None:
        _check(function, given, expression)
    if function in {"count", "count_distinct"}:
        return "bigint"
    if function in _DOUBLES:
        return "double"
    if given is None:
        return None
    if function == "sum":
        return _sum(given)
    if function == "top_k":
        item = "string" if given == "string" else "bigint"
        return f"array<struct<item:{item},count:bigint>>"
    return given


def _check(function: str, given: str, expression: str) -> None:
    if function in _NUMBERS and not types.is_numeric(given):
        raise WrongType(f"{function}() needs a number, got {expression} {given}; cast it or use count()")
    if function == "top_k" and given != "string" and not types.is_integer(given):
        raise WrongType(f"top_k() needs a string or an integer, got {expression} {given}; cast it")
    if function != "count" and not types.is_atomic(given):
        raise WrongType(
            f"{function}() needs one plain value, got {expression} {given}; take a field or element of it"
        )


def _sum(given: str) -> str:
    if types.is_integer(given):
        return "bigint"
    if types.is_floating(given):
        return "double"
    precision, scale = map(int, re.findall(r"\d+", given))
    return f"decimal({min(precision + 10, 38)},{scale})"
