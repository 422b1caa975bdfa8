"""Functions of numbers that have one right value: rounding, roots, counting.

Not here: exponentials, logarithms, powers and functions of angles. Their last bit depends on the library that
computes them, so two engines give two values; Spark evaluates them.
"""

from collections.abc import Sequence

from penstock.functions.function import Form, define, precision_of, same_as_first

__all__: list[str] = []


def _whole_decimal(given: Sequence[str]) -> str:
    """What floor and ceil give of a decimal: all digits before the point, and one more."""
    digits, scale = precision_of(given[0])
    return f"decimal({digits - scale + 1},0)" if scale else f"decimal({digits},0)"


for _names, _duck in (("floor", "floor"), ("ceil ceiling", "ceil")):
    define(
        "mathematics",
        _names,
        # Of NaN Spark makes 0.
        Form(
            ("double",),
            "bigint",
            f"CASE WHEN isnan({{0}}) THEN 0 ELSE CAST({_duck}({{0}}) AS BIGINT) END",
            raises=True,
        ),
        Form(("integer",), "bigint", "CAST({0} AS BIGINT)"),
        Form(("decimal",), _whole_decimal, f"CAST({_duck}({{0}}) AS {{type}})"),
    )
define(
    "mathematics",
    "sqrt",
    Form(("double",), "double", "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END"),
    Form(
        ("integer",),
        "double",
        "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt(CAST({0} AS DOUBLE)) END",
    ),
)
define(
    "mathematics",
    "sign signum",
    Form(
        ("double",), "double", "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END"
    ),
    Form(("integer",), "double", "CAST(sign({0}) AS DOUBLE)"),
)
define(
    "mathematics",
    "rint",
    Form(
        ("double",),
        "double",
        "CASE WHEN NOT isfinite({0}) OR abs({0}) >= 4503599627370496 THEN {0} "
        "WHEN {0} <= 0 THEN -round_even(-{0}, 0) ELSE round_even({0}, 0) END",
    ),
)
define(
    "mathematics",
    "power pow",
    Form(("double", "int"), "double", "({0} * {0})", literals={1: lambda text: text == "2"}),
    note="squares only: pow(x, 2)",
)
for _name, _factor in (("degrees", "57.29577951308232"), ("radians", "0.017453292519943295")):
    define(
        "mathematics",
        _name,
        # Java multiplies with this double.
        Form(("double",), "double", f"({{0}} * CAST({_factor} AS DOUBLE))"),
        Form(("integer",), "double", f"(CAST({{0}} AS DOUBLE) * CAST({_factor} AS DOUBLE))"),
    )
define("mathematics", "e", Form((), "double", "CAST(2.718281828459045 AS DOUBLE)"))
define("mathematics", "pi", Form((), "double", "CAST(3.141592653589793 AS DOUBLE)"))
define(
    "mathematics",
    "factorial",
    Form(("int",), "bigint", "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END"),
)
define("mathematics", "round", Form(("integer",), same_as_first, "{0}"))
define("mathematics", "bround", Form(("integer",), same_as_first, "{0}"))
