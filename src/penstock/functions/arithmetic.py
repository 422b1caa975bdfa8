"""Arithmetic and bits: operands are cast to the type of the result, so that both engines compute in it.

Integers overflow with an error in both engines. Of decimals, results of at most 38 digits are certified:
beyond, Spark gives up digits of the fraction.
"""

from collections.abc import Sequence
from typing import Final

from penstock.functions.function import INTEGERS, Form, define, precision_of, same_as_first

__all__: list[str] = []

_MOST_DIGITS: Final = 38


def _widest(given: Sequence[str]) -> str | None:
    """Integers to the wider one, any number with a double to double."""
    if "double" in given:
        return "double" if all(each in {*INTEGERS, "double"} for each in given) else None
    return max(given, key=INTEGERS.index)


def _summed(given: Sequence[str]) -> str | None:
    (one, places), (other, scale) = map(precision_of, given)
    fraction = max(places, scale)
    digits = max(one - places, other - scale) + fraction + 1
    return f"decimal({digits},{fraction})" if digits <= _MOST_DIGITS else None


def _binary(operator: str) -> Form:
    return Form(
        ("real", "real"),
        _widest,
        f"(CAST({{0}} AS {{type}}) {operator} CAST({{1}} AS {{type}}))",
        raises=True,
    )


def _floats(operator: str) -> Form:
    return Form(("float", "float"), "float", f"({{0}} {operator} {{1}})")


_DECIMAL_SUM = "CAST(CAST({{0}} AS {{type}}) {0} CAST({{1}} AS {{type}}) AS {{type}})"
_NOT_ZERO = "CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN error('division by zero') ELSE {0} END"

for _name, _operator in (("+", "+"), ("-", "-")):
    define(
        "arithmetic",
        _name,
        _binary(_operator),
        _floats(_operator),
        Form(("decimal", "decimal"), _summed, _DECIMAL_SUM.format(_operator), raises=True),
    )
define("arithmetic", "*", _binary("*"), _floats("*"), note="decimals are multiplied in Spark")
define(
    "arithmetic",
    "/",
    Form(
        ("real", "real"),
        "double",
        _NOT_ZERO.format("CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE)"),
        raises=True,
    ),
    Form(
        ("float", "float"),
        "double",
        _NOT_ZERO.format("CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE)"),
        raises=True,
    ),
)
_REMAINDER = _NOT_ZERO.format("CAST({0} AS {type}) % CAST({1} AS {type})")
define("arithmetic", "% mod", Form(("real", "real"), _widest, _REMAINDER, raises=True))
define(
    "arithmetic",
    "div",
    Form(
        ("integer", "integer"),
        "bigint",
        _NOT_ZERO.format("CAST({0} AS BIGINT) // CAST({1} AS BIGINT)"),
        raises=True,
    ),
)
define(
    "arithmetic",
    "pmod",
    Form(
        ("integer", "integer"),
        _widest,
        _NOT_ZERO.format(
            "CASE WHEN CAST({0} AS {type}) % CAST({1} AS {type}) < 0 "
            "THEN (CAST({0} AS {type}) % CAST({1} AS {type}) + CAST({1} AS {type})) "
            "% CAST({1} AS {type}) "
            "ELSE CAST({0} AS {type}) % CAST({1} AS {type}) END"
        ),
        raises=True,
    ),
)
define(
    "arithmetic",
    "unary- negative",
    Form(("integer",), same_as_first, "(-{0})", raises=True),
    Form(("double",), "double", "(-{0})"),
    Form(("float",), "float", "(-{0})"),
    Form(("decimal",), same_as_first, "(-{0})"),
)
define("arithmetic", "positive", Form(("number",), same_as_first, "{0}"))
define(
    "arithmetic",
    "abs",
    Form(("integer",), same_as_first, "abs({0})", raises=True),
    Form(("double",), "double", "abs({0})"),
    Form(("float",), "float", "abs({0})"),
    Form(("decimal",), same_as_first, "abs({0})"),
)

for _name, _operator in (("&", "&"), ("|", "|")):
    define(
        "bits",
        _name,
        Form(
            ("integer", "integer"), _widest, f"(CAST({{0}} AS {{type}}) {_operator} CAST({{1}} AS {{type}}))"
        ),
    )
define("bits", "^", Form(("integer", "integer"), _widest, "xor(CAST({0} AS {type}), CAST({1} AS {type}))"))
define("bits", "~", Form(("integer",), same_as_first, "(~{0})"))
# DuckDB counts the bits of a tinyint as eight, Spark those of the number widened to 64.
define("bits", "bit_count", Form(("integer",), "int", "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)"))
define(
    "bits",
    "getbit bit_get",
    Form(
        ("bigint", "int"),
        "tinyint",
        "CASE WHEN {1} < 0 OR {1} > 63 THEN error('no such bit') "
        "ELSE CAST((CAST({0} AS BIGINT) >> CAST({1} AS BIGINT)) & 1 AS TINYINT) END",
        raises=True,
    ),
)
