"""Arithmetic and bits: operands are cast to the type of the result, so that both engines compute in it.

Integers overflow with an error in both engines. Quotients of decimals are Spark's, and so are products that
may need more than 38 digits: it gives up digits of the fraction there.
"""

from collections.abc import Sequence
from typing import Final

from penstock.functions.function import (
    ENDS,
    INTEGERS,
    Form,
    define,
    has_exact_double,
    precision_of,
    same_as_first,
)

__all__: list[str] = []

_MOST_DIGITS: Final = 38
_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def _widest(given: Sequence[str]) -> str:
    """The wider one of integers."""
    return max(given, key=INTEGERS.index)


def _floating(given: Sequence[str]) -> str | None:
    """Any number with a double to double; floats stay floats."""
    if set(given) == {"float"}:
        return "float"
    return "double" if "double" in given and all(map(has_exact_double, given)) else None


def _quotient(given: Sequence[str]) -> str | None:
    """A quotient is a double, except of decimals."""
    found = all(map(has_exact_double, given)) and (
        "double" in given or not any(each.startswith("decimal(") for each in given)
    )
    return "double" if found else None


def _summed(given: Sequence[str]) -> str | None:
    (one, places), (other, scale) = map(precision_of, given)
    fraction = max(places, scale)
    digits = max(one - places, other - scale) + fraction + 1
    return f"decimal({digits},{fraction})" if digits <= _MOST_DIGITS else None


def _product(given: Sequence[str]) -> str | None:
    """Decimals, and integers as decimals of all their digits, where Spark keeps every digit."""
    (one, places), (other, scale) = (
        (_DIGITS[each], 0) if each in _DIGITS else precision_of(each) for each in given
    )
    digits = one + other + 1
    return f"decimal({digits},{places + scale})" if digits <= _MOST_DIGITS else None


def _short_decimal(given: Sequence[str]) -> str | None:
    """Spark rounds longer decimals when it changes their sign."""
    return given[0] if precision_of(given[0])[0] <= 18 else None


def _unless_zero(sql: str) -> str:
    return f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN error('division by zero') ELSE {sql} END"


_DIVISION: Final = "divisor first"
_REAL: Final = ("real", "real")
_WHOLE: Final = ("integer", "integer")

for _name in ("+", "-"):
    define(
        "arithmetic",
        _name,
        Form(_WHOLE, _widest, f"{{0:as}} {_name} {{1:as}}", raises=True),
        Form(_REAL, _floating, f"{{0:as}} {_name} {{1:as}}"),
        Form(("decimal", "decimal"), _summed, f"CAST({{0:as}} {_name} {{1:as}} AS {{type}})", raises=True),
        written=f"{{0}} {_name} {{1}}",
    )
define(
    "arithmetic",
    "*",
    Form(_WHOLE, _widest, "{0:as} * {1:as}", raises=True),
    Form(_REAL, _floating, "{0:as} * {1:as}"),
    Form(("decimal", "decimal"), _product, "CAST({0} * {1} AS {type})"),
    Form(("decimal", "integer"), _product, "CAST({0} * {1} AS {type})", varying=frozenset({1})),
    Form(("integer", "decimal"), _product, "CAST({0} * {1} AS {type})", varying=frozenset({0})),
    written="{0} * {1}",
)
define(
    "arithmetic",
    "/",
    Form(_REAL, _quotient, _unless_zero("{0:as} / {1:as}"), raises=True, order=_DIVISION),
    written="{0} / {1}",
)
# DuckDB finds an overflow in the smallest integer over -1, of which nothing remains.
_WHOLE_REMAINDER = "CASE WHEN {1} = -1 THEN {0:as} * 0 ELSE {0:as} % {1:as} END"
_REMAINDERS = (
    Form(_WHOLE, _widest, _unless_zero(_WHOLE_REMAINDER), raises=True, order=_DIVISION),
    Form(_REAL, _floating, _unless_zero("{0:as} % {1:as}"), raises=True, order=_DIVISION),
)
define("arithmetic", "%", *_REMAINDERS, written="{0} % {1}")
define("arithmetic", "mod", *_REMAINDERS)
define(
    "arithmetic",
    "div",
    Form(
        _WHOLE,
        "bigint",
        _unless_zero("CAST({0} AS BIGINT) // CAST({1} AS BIGINT)"),
        raises=True,
        order=_DIVISION,
    ),
    written="{0} div {1}",
)
define(
    "arithmetic",
    "pmod",
    Form(
        _WHOLE,
        _widest,
        "({0:as} % {1:as} + {1:as}) % {1:as}",
        # Other divisors overflow in Spark without an error.
        literals={1: lambda text: 0 < int(text) < 2**6},
        raises=True,
        order=_DIVISION,
    ),
    note="by a positive literal below 64",
)
_NEGATED = (
    Form(("integer",), same_as_first, "-{0}", raises=True),
    Form(("double",), "double", "-{0}"),
    Form(("float",), "float", "-{0}"),
    Form(("decimal",), _short_decimal, "-{0}"),
)
define("arithmetic", "unary-", *_NEGATED, written="- {0}")
define("arithmetic", "negative", *_NEGATED)
define("arithmetic", "positive", Form(("real",), same_as_first, "{0}"))
define(
    "arithmetic",
    "abs",
    Form(("integer",), same_as_first, "abs({0})", raises=True),
    Form(("double",), "double", "abs({0})"),
    Form(("float",), "float", "abs({0})"),
    Form(("decimal",), _short_decimal, "abs({0})"),
)


def _unless_over(operator: str, kind: str) -> Form:
    exact = f"(CAST({{0}} AS HUGEINT) {operator} {{1}})"
    fits = f"{exact} BETWEEN {-ENDS[kind]} AND {ENDS[kind] - 1}"
    return Form((kind, kind), kind, f"CASE WHEN {fits} THEN CAST({exact} AS {{type}}) END")


# Not try_add and try_multiply: Spark moves literals of nested ones together, past an overflow.
define(
    "arithmetic",
    "try_subtract",
    *(_unless_over("-", kind) for kind in INTEGERS),
    Form(("double", "double"), "double", "{0} - {1}"),
)
define(
    "arithmetic",
    "try_divide",
    Form(("double", "double"), "double", "CASE WHEN {1} <> 0 THEN {0} / {1} END", order="all"),
)
define(
    "arithmetic",
    "try_mod",
    *(
        Form((kind, kind), kind, f"CASE WHEN {{1}} <> 0 THEN {_WHOLE_REMAINDER} END", order="all")
        for kind in INTEGERS
    ),
)

for _name in ("&", "|"):
    define("bits", _name, Form(_WHOLE, _widest, f"{{0:as}} {_name} {{1:as}}"), written=f"{{0}} {_name} {{1}}")
define("bits", "^", Form(_WHOLE, _widest, "xor({0:as}, {1:as})"), written="{0} ^ {1}")
define("bits", "~", Form(("integer",), same_as_first, "~{0}"), written="~ {0}")
# DuckDB counts the bits of a tinyint as eight, Spark those of the number widened to 64.
define("bits", "bit_count", Form(("integer",), "int", "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)"))
define(
    "bits",
    "shiftright",
    *(
        Form((kind, "int"), kind, "{0} >> {1:as}", literals={1: lambda text: 0 <= int(text) < 32})
        for kind in ("int", "bigint")
    ),
    note="by a literal from 0 to 31",
)
define(
    "bits",
    "getbit bit_get",
    Form(
        ("bigint", "int"),
        "tinyint",
        "CASE WHEN {1} < 0 OR {1} > 63 THEN error('no such bit') "
        "ELSE CAST(({0} >> CAST({1} AS BIGINT)) & 1 AS TINYINT) END",
        raises=True,
    ),
)
