"""Comparisons, logic and choices between values.

Numbers of different types are compared in the type that both widen to; a string and a number are not
certified, since the string would be cast, which raises for most strings.
"""

from collections.abc import Sequence

from penstock.functions.function import INTEGERS, Form, define

__all__: list[str] = []

_REALS = {*INTEGERS, "double"}


def _comparable(given: Sequence[str]) -> str | None:
    if len(set(given)) == 1 or set(given) <= _REALS:
        return "boolean"
    return "boolean" if all(each.startswith("decimal(") for each in given) else None


def _shared(given: Sequence[str]) -> str | None:
    """The one type that all arguments have, or the widest of integers; a null of no type fits any."""
    kinds = {each for each in given if each != "void"}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds and kinds <= set(INTEGERS):
        return max(kinds, key=INTEGERS.index)
    return "double" if kinds and kinds <= _REALS else None


def _second(given: Sequence[str]) -> str | None:
    return _shared(given[1:])


for _spark, _duck in (("=", "="), ("<>", "<>"), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">=")):
    define("comparison", _spark, Form(("plain", "plain"), _comparable, f"({{0}} {_duck} {{1}})"))
define("comparison", "<=>", Form(("plain", "plain"), _comparable, "({0} IS NOT DISTINCT FROM {1})"))
define("comparison", "between", Form(("plain", "plain", "plain"), _comparable, "({0} >= {1} AND {0} <= {2})"))
define("comparison", "in", Form(("plain", "plain*"), _comparable, "({0} IN ({rest}))"))
define("comparison", "is_null isnull", Form(("any",), "boolean", "({0} IS NULL)"))
define("comparison", "is_not_null isnotnull", Form(("any",), "boolean", "({0} IS NOT NULL)"))
define("comparison", "is_true", Form(("boolean",), "boolean", "({0} IS NOT DISTINCT FROM true)"))
define("comparison", "is_false", Form(("boolean",), "boolean", "({0} IS NOT DISTINCT FROM false)"))
define(
    "comparison",
    "isnan",
    Form(("double",), "boolean", "coalesce(isnan({0}), false)"),
    Form(("float",), "boolean", "coalesce(isnan({0}), false)"),
)

define("logic", "and", Form(("boolean", "boolean"), "boolean", "({0} AND {1})"))
define("logic", "or", Form(("boolean", "boolean"), "boolean", "({0} OR {1})"))
define("logic", "not", Form(("boolean",), "boolean", "(NOT {0})"))

define(
    "choice",
    "case",
    Form(("plain*",), _shared, "{all}"),
    note="each branch in Spark's order; a branch that is not taken raises nothing",
)
define(
    "choice",
    "if iff",
    Form(
        ("boolean", "plain", "plain"),
        _second,
        "CASE WHEN {0} THEN CAST({1} AS {type}) ELSE CAST({2} AS {type}) END",
    ),
)
define("choice", "coalesce", Form(("plain*",), _shared, "CAST(coalesce({all}) AS {type})"))
define("choice", "nvl ifnull", Form(("plain", "plain"), _shared, "CAST(coalesce({0}, {1}) AS {type})"))
define(
    "choice",
    "nvl2",
    Form(
        ("any", "plain", "plain"),
        _second,
        "CASE WHEN {0} IS NOT NULL THEN CAST({1} AS {type}) ELSE CAST({2} AS {type}) END",
    ),
)
define("choice", "nullif", Form(("plain", "plain"), lambda given: given[0], "nullif({0}, {1})", same=True))
define("choice", "nullifzero", Form(("integer",), lambda given: given[0], "nullif({0}, 0)"))
define(
    "choice",
    "zeroifnull",
    Form(
        ("integer",),
        _shared_with_int := (lambda given: max((given[0], "int"), key=INTEGERS.index)),
        "CAST(coalesce({0}, 0) AS {type})",
    ),
)
define("choice", "greatest", Form(("plain", "plain*"), _shared, "greatest({cast})"))
define("choice", "least", Form(("plain", "plain*"), _shared, "least({cast})"))
define("choice", "nanvl", Form(("double", "double"), "double", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"))
