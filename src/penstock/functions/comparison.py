"""Comparisons, logic and choices between values.

Numbers of different types are compared in the type that both widen to. A string and a number are not
certified: the string would be cast, which raises for most strings.
"""

from collections.abc import Sequence

from penstock.functions.function import INTEGERS, Form, define, has_exact_double, same_as_first

__all__: list[str] = []

_TWO = ("plain", "plain")


def _comparable(given: Sequence[str]) -> str | None:
    kinds = set(given)
    if len(kinds) == 1 or kinds <= set(INTEGERS):
        return "boolean"
    if "double" in kinds:
        return "boolean" if all(map(has_exact_double, kinds)) else None
    return "boolean" if all(each in INTEGERS or each.startswith("decimal(") for each in kinds) else None


def _shared(given: Sequence[str]) -> str | None:
    """The one type that all arguments have, or the widest of integers; a null of no type fits any."""
    kinds = {each for each in given if each != "void"}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds and kinds <= set(INTEGERS):
        return max(kinds, key=INTEGERS.index)
    return "double" if kinds and "double" in kinds and all(map(has_exact_double, kinds)) else None


def _shared_rest(given: Sequence[str]) -> str | None:
    return _shared(given[1:])


def _with_int(given: Sequence[str]) -> str:
    return max((given[0], "int"), key=INTEGERS.index)


# A float that meets a double is widened in Spark; DuckDB would narrow the double.
_WIDE = {"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
for _name, _duck in _WIDE.items():
    define(
        "comparison",
        _name,
        Form(_TWO, _comparable, f"{{0:with}} {_duck} {{1:with}}"),
        written=f"{{0}} {_name} {{1}}",
    )
define(
    "comparison",
    "<=>",
    Form(_TWO, _comparable, "{0:with} IS NOT DISTINCT FROM {1:with}", order="all"),
    written="{0} <=> {1}",
)
define(
    "comparison", "equal_null", Form(_TWO, _comparable, "{0:with} IS NOT DISTINCT FROM {1:with}", order="all")
)
define(
    "comparison",
    "between",
    Form(
        ("plain", "plain", "plain"),
        _comparable,
        "{0:with} >= {1:with} AND {0:with} <= {2:with}",
        order="short",
    ),
    written="{0} between {1} and {2}",
)
define(
    "comparison",
    "in",
    Form(("plain", "plain*"), _comparable, "{0:with} IN ({rest:with})", order="short"),
    written="{0} in ({rest})",
)
define("comparison", "is_null", Form(("any",), "boolean", "{0} IS NULL", order="all"), written="{0} is null")
define("comparison", "isnull", Form(("any",), "boolean", "{0} IS NULL", order="all"))
define("comparison", "isnotnull", Form(("any",), "boolean", "{0} IS NOT NULL", order="all"))
define(
    "comparison",
    "is_true",
    Form(("boolean",), "boolean", "{0} IS NOT DISTINCT FROM true", order="all"),
    written="{0} is true",
)
define(
    "comparison",
    "is_false",
    Form(("boolean",), "boolean", "{0} IS NOT DISTINCT FROM false", order="all"),
    written="{0} is false",
)
define(
    "comparison",
    "isnan",
    Form(("double",), "boolean", "coalesce(isnan({0}), false)", order="all"),
    Form(("float",), "boolean", "coalesce(isnan({0}), false)", order="all"),
)

_BOTH = ("boolean", "boolean")
define(
    "logic",
    "and",
    Form(_BOTH, "boolean", "{0} AND {1}", order="short"),
    written="{0} and {1}",
)
define("logic", "or", Form(_BOTH, "boolean", "{0} OR {1}", order="short"), written="{0} or {1}")
define("logic", "not", Form(("boolean",), "boolean", "NOT {0}"), written="not {0}")

define(
    "choice",
    "case",
    Form(
        ("boolean", "plain", "plain"), _shared_rest, "CASE WHEN {0} THEN {1:as} ELSE {2:as} END", order="lazy"
    ),
    written="case when {0} then {1} else {2} end",
    note="with any number of branches, and with a value to compare",
)
define(
    "choice",
    "if",
    Form(
        ("boolean", "plain", "plain"), _shared_rest, "CASE WHEN {0} THEN {1:as} ELSE {2:as} END", order="lazy"
    ),
)
define("choice", "coalesce", Form(("plain*",), _shared, "coalesce({all:as})", order="lazy"))
define("choice", "nvl ifnull", Form(_TWO, _shared, "coalesce({0:as}, {1:as})", order="lazy"))
define(
    "choice",
    "nvl2",
    Form(
        ("any", "plain", "plain"),
        _shared_rest,
        "CASE WHEN {0} IS NOT NULL THEN {1:as} ELSE {2:as} END",
        order="lazy",
    ),
)


def _same(given: Sequence[str]) -> str | None:
    return given[0] if len(set(given)) == 1 else None


define("choice", "nullif", Form(_TWO, _same, "nullif({0}, {1})"))
define("choice", "nullifzero", Form(("integer",), same_as_first, "nullif({0}, 0)"))
define("choice", "zeroifnull", Form(("integer",), _with_int, "coalesce({0:as}, 0)", order="lazy"))
define("choice", "greatest", Form(("plain", "plain*"), _shared, "greatest({all:as})", order="all"))
define("choice", "least", Form(("plain", "plain*"), _shared, "least({all:as})", order="all"))
define(
    "choice",
    "nanvl",
    Form(("double", "double"), "double", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END", order="lazy"),
)
