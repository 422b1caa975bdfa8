"""Random expressions and aggregates over columns, in Spark SQL and in DuckDB's.

Plain ones are written for both dialects here. Deep ones are compositions of certified functions: DuckDB
evaluates the product's own translation of them, which the certificates hold against Spark; a run against
Spark's own result does without it.
"""

import re
from dataclasses import replace
from random import Random

from fuzz.draw_values import FLOATS, INTEGERS, NUMBERS
from fuzz.program import MARK, Aggregate, Expr, combined
from graphs import graph
from graphs.expressions import KINDS, _certified, _leaves
from graphs.graph import mean_type, sum_type
from penstock.functions import Uncertified, translated

EXTREMES = ("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807")
"""Where a literal becomes one of a wider type."""
WHOLE = ("0", "0", "1", "1", "2", "2", "-1", "-1", "127", *EXTREMES)
LITERALS = {
    **{kind: [(each, each) for each in WHOLE] for kind in INTEGERS},
    **dict.fromkeys(
        FLOATS,
        (
            ("0D", "0::DOUBLE"),
            ("0.5D", "0.5::DOUBLE"),
            ("1D", "1::DOUBLE"),
            ("-1.5", "-1.5::DOUBLE"),
            ("1e3", "1000::DOUBLE"),
        ),
    ),
    "decimal(9,2)": [("0.50", "0.50"), ("1.1", "1.1"), ("0", "0"), ("-0.01", "-0.01"), ("00.5", "0.5")],
    "decimal(20,4)": [("0.50", "0.50"), ("1.1", "1.1"), ("0", "0")],
    "string": [(f"'{each}'", f"'{each}'") for each in ("a", "", "é", "b", " ", "😀")],
    "boolean": [("true", "true"), ("false", "false")],
    "date": [
        ("date'2024-02-29'", "DATE '2024-02-29'"),
        ("date'1970-01-01'", "DATE '1970-01-01'"),
        ("'2024-02-29'", "DATE '2024-02-29'"),
    ],
    "timestamp": [
        ("timestamp'1970-01-01 00:00:00'", "TIMESTAMPTZ '1970-01-01 00:00:00'"),
        ("'2024-02-29 23:59:02'", "TIMESTAMPTZ '2024-02-29 23:59:02'"),
        ("timestamp'2024-02-29 12:34:56.789012'", "TIMESTAMPTZ '2024-02-29 12:34:56.789012'"),
        ("timestamp'2024-02-29 23:59:05'", "TIMESTAMPTZ '2024-02-29 23:59:05'"),
    ],
}
ORDERED = (*NUMBERS, "string", "boolean", "date", "timestamp", "timestamp_ntz")
PLAIN = (*ORDERED, "binary")
"""What orders and groups everywhere."""


CONSTANTS = (
    ("CAST(1.5 AS int)", "1::INTEGER", "int"),
    ("CAST(-2.75 AS bigint)", "-2::BIGINT", "bigint"),
    ("CAST(7 AS double)", "7::DOUBLE", "double"),
    ("CAST(0.125 AS double)", "0.125::DOUBLE", "double"),
    ("CAST(3 AS string)", "'3'", "string"),
    ("1e3", "1000::DOUBLE", "double"),
    ("-2.5D", "(-2.5)::DOUBLE", "double"),
    ("1.50", "1.50::DECIMAL(3,2)", "decimal(3,2)"),
    ("-0.05", "(-0.05)::DECIMAL(2,2)", "decimal(2,2)"),
    ("00.5", "0.5::DECIMAL(1,1)", "decimal(1,1)"),
    ("false", "false", "boolean"),
    ("'a\\0b'", "('a' || chr(0) || 'b')", "string"),
    ("date'2024-02-29'", "DATE '2024-02-29'", "date"),
)


def literal(rng: Random, kind: str) -> Expr:
    spark, duck = rng.choice(LITERALS[kind])
    return Expr(spark, duck, kind)


def condition(  # noqa: PLR0911 -- a line for each kind
    rng: Random, given: list[Expr], depth: int = 2
) -> Expr:
    """A condition that may be null and raises for no row."""
    usable = [each for each in given if each.exact and (each.type in LITERALS or each.type in PLAIN)]
    if not usable:
        return Expr("1 = 1", "1 = 1", "boolean")
    kind = rng.random()
    if depth and kind < 0.3:
        word = rng.choice(["AND", "OR"])
        left, right = (condition(rng, given, depth - 1) for _ in range(2))
        return combined(f"({{0}} {word} {{1}})", "boolean", left, right)
    if depth and kind < 0.4:
        return combined("NOT ({0})", "boolean", condition(rng, given, depth - 1))
    if depth and kind < 0.46:
        parts = [condition(rng, given, depth - 1) for _ in range(3)]
        return combined("CASE WHEN {0} THEN {1} ELSE {2} END", "boolean", *parts, tags=("case",))
    if depth and kind < 0.5:
        found = _guarded(rng, usable)
        if found is not None:
            return found
    if kind < 0.55:
        deep = certified(rng, "boolean", usable)
        if deep is not None:
            return deep
    return _simple(rng, usable)


GUARDED = (
    ("({0} <> 0 AND 100 % {0} < {1})", "({0} <> 0 AND 100 % nullif({0}::BIGINT, 0) < {1})"),
    ("({0} = 0 OR 100 % {0} < {1})", "({0} = 0 OR 100 % nullif({0}::BIGINT, 0) < {1})"),
    ("({0} < 99 AND {0} + 1 > {1})", "({0} < 99 AND CASE WHEN {0} < 99 THEN {0}::BIGINT + 1 END > {1})"),
    ("({0} > 99 OR {0} + 1 > {1})", "({0} > 99 OR CASE WHEN {0} <= 99 THEN {0}::BIGINT + 1 END > {1})"),
    (
        "CASE WHEN {0} <> 0 THEN 100 % {0} ELSE 7 END > {1}",
        "CASE WHEN {0} <> 0 THEN 100 % nullif({0}::BIGINT, 0) ELSE 7 END > {1}",
    ),
)
"""What would raise for some values, behind what leaves these out; in DuckDB it raises for none."""


def _guarded(rng: Random, usable: list[Expr]) -> Expr | None:
    numbers = [each for each in usable if each.type in INTEGERS]
    if not numbers:
        return None
    parts = rng.choice(numbers), rng.choice(numbers)
    return combined(rng.choice(GUARDED), "boolean", *parts, tags=("guarded",))


def _simple(rng: Random, usable: list[Expr]) -> Expr:  # noqa: PLR0911 -- a line for each kind
    one = rng.choice(usable)
    kind = rng.random()
    if kind < 0.15:
        return combined(f"{{0}} IS {rng.choice(['', 'NOT '])}NULL", "boolean", one)
    others = [each for each in usable if each.type == one.type and each != one]
    if others and kind < 0.55:
        word = rng.choice(["=", "<>", "<", "<=", ">", ">="])
        return combined(f"{{0}} {word} {{1}}", "boolean", one, rng.choice(others), tags=("compare",))
    if one.type == "boolean" and kind < 0.7:
        return one
    if one.type in LITERALS:
        if kind < 0.75:
            word = rng.choice(["=", "<>", "<", "<=", ">", ">="])
            return combined(f"{{0}} {word} {{1}}", "boolean", one, literal(rng, one.type))
        if kind < 0.85:
            parts = one, literal(rng, one.type), literal(rng, one.type)
            word = rng.choice(["", "NOT "])
            return combined(f"{{0}} {word}IN ({{1}}, {{2}})", "boolean", *parts, tags=("in list",))
        if kind < 0.95:
            parts = one, literal(rng, one.type), literal(rng, one.type)
            return combined("{0} BETWEEN {1} AND {2}", "boolean", *parts, tags=("between",))
        template = ("{0} <=> {1}", "{0} IS NOT DISTINCT FROM {1}")
        return combined(template, "boolean", one, literal(rng, one.type), tags=("<=>",))
    return combined("{0} IS NOT NULL", "boolean", one)


def value(rng: Random, given: list[Expr]) -> Expr:
    """A value of any type; often a column as it is."""
    if rng.random() < 0.05:
        return Expr(*rng.choice(CONSTANTS), tags=("constant",))
    one = rng.choice(given)
    if not one.exact or rng.random() < 0.35:
        return one
    exact = [each for each in given if each.exact]
    if rng.random() < 0.4:
        deep = certified(rng, rng.choice(KINDS), exact)
        if deep is not None:
            return deep
    made = _changed(rng, one, exact)
    return made if made is not None else one


def _changed(rng: Random, one: Expr, given: list[Expr]) -> Expr | None:
    kind = one.type
    choices = []
    if kind in LITERALS:
        chosen = condition(rng, given, 0)
        choices += [
            combined("coalesce({0}, {1})", kind, one, one),
            combined("CASE WHEN {0} THEN {1} END", kind, chosen, one, tags=("case",)),
            combined("nullif({0}, {1})", kind, one, one, tags=("nullif",)),
        ]
    if kind in INTEGERS:
        choices += [
            combined(("CAST({0} AS bigint)", "CAST({0} AS BIGINT)"), "bigint", one, tags=("cast",)),
            combined(("CAST({0} AS string)", "CAST({0} AS VARCHAR)"), "string", one, tags=("cast",)),
            combined(("CAST({0} AS double)", "CAST({0} AS DOUBLE)"), "double", one, tags=("cast",)),
            combined("{0} > 1", "boolean", one),
        ]
        far = rng.choice(EXTREMES)
        wide = "bigint" if kind == "bigint" or abs(int(far)) > 2**31 or far == "2147483648" else "int"
        template = (f"coalesce({{0}}, {far})", f"coalesce({{0}}, {far})::{wide}")
        choices.append(combined(template, wide, one, tags=("far literal",)))
    if kind in {"int", "bigint"}:
        choices.append(combined("{0} % 3", kind, one, tags=("%",)))
        choices.append(combined("{0} & 3", kind, one, tags=("&",)))
        choices.append(_shifted(rng.choice([1, 5, 33]), one))
    if kind == "double":
        choices += [
            combined(("{0} * 2D", "{0} * 2::DOUBLE"), kind, one, tags=("*",)),
            combined(("pow({0}, 2)", "({0} * {0})"), kind, one, tags=("pow",)),
            combined("abs({0})", kind, one, tags=("abs",)),
        ]
    if kind == "string":
        choices += [
            combined(("length({0})", "CAST(length({0}) AS INTEGER)"), "int", one, tags=("length",)),
            combined("{0} || 'x'", "string", one, tags=("||",)),
            combined("substring({0}, 1, 1)", "string", one, tags=("substring",)),
            combined(("trim({0})", "trim({0}, ' ')"), "string", one, tags=("trim",)),
            combined("{0} LIKE 'a%'", "boolean", one, tags=("like",)),
        ]
    if kind == "date":
        template = ("year({0})", "CAST(year({0}) AS INTEGER)")
        choices.append(combined(template, "int", one, tags=("year",)))
    if kind in {"timestamp", "timestamp_ntz"}:
        length = rng.choice(["'5' SECOND", "'1.5' SECOND", "90 MINUTES", "'2' HOURS", "1 DAY"])
        plain = length.replace("'", "")
        way = rng.choice("+-")
        template = (f"{{0}} {way} INTERVAL {length}", f"{{0}} {way} INTERVAL '{plain}'")
        choices.append(combined(template, kind, one, tags=("interval",)))
    if kind == "timestamp":
        template = ("unix_micros({0})", "epoch_us({0})")
        choices.append(combined(template, "bigint", one, tags=("unix_micros",)))
        template = (rng.choice(["hour({0})", "extract(HOUR FROM {0})"]), "CAST(hour({0}) AS INTEGER)")
        choices.append(combined(template, "int", one, tags=("hour",)))
        choices.append(combined(("CAST({0} AS date)", "CAST({0} AS DATE)"), "date", one, tags=("cast",)))
    if kind.startswith("struct<a"):
        choices += [combined("{0}.a", "int", one, tags=("field",)), combined("{0}.b", "string", one)]
    return rng.choice(choices) if choices else None


def _shifted(by: int, one: Expr) -> Expr:
    """A number shifted right; Spark goes by as many bits as it has, and the product leaves more to Spark."""
    bits = by % (32 if one.type == "int" else 64)
    return combined((f"shiftright({{0}}, {by})", f"({{0}} >> {bits})"), one.type, one, tags=("shiftright",))


def certified(rng: Random, kind: str, given: list[Expr]) -> Expr | None:
    """A composition of certified functions, None where the product has no translation."""
    columns = [each for each in given if each.type in KINDS and MARK.fullmatch(each.spark)]
    if not columns:
        return None
    names = {f"c_{place}": each for place, each in enumerate(columns)}
    leaves = _leaves(tuple(graph.Column(name, each.type) for name, each in names.items()))
    spark = _certified(rng, kind, leaves)
    if kind == "timestamp" and "timestamp_micros" in spark:
        return None
    try:
        found = translated(spark, {name: each.type for name, each in names.items()})
    except Uncertified:
        return None
    if found.type != kind:
        return None

    def back(text: str, quote: str) -> str:
        return re.sub(rf"{quote}c_(\d+){quote}", lambda each: columns[int(each[1])].spark, text)

    # Tasks have times without a zone, in UTC; here they have the session's.
    duck = found.sql.replace("AS TIMESTAMP)", "AS TIMESTAMPTZ)")
    tags = tuple(sorted(set(re.findall(r"\b([a-z_0-9]+)\(", spark))))
    return Expr(f"({back(spark, chr(92) + 'b')})", f"({back(duck, chr(34))})", kind, tags=tags)


def aggregate(rng: Random, given: list[Expr]) -> Aggregate:
    """An aggregate with a result that follows from the rows alone, in whatever order."""
    for _ in range(20):
        found = _aggregate(rng, rng.choice(given), given)
        if found is not None:
            break
    else:
        found = Aggregate("count", "count(*)", "count(*)", "bigint", True, ())
    where = condition(rng, given, 1) if rng.random() < 0.25 else None
    plain = found.arguments and found.arguments[0].type in PLAIN and len(found.arguments) == 1
    distinct = found.name in DISTINCT and bool(plain) and rng.random() < 0.3
    return replace(found, where=where, distinct=distinct)


def ordered(rng: Random, given: list[Expr]) -> Aggregate | None:
    """An aggregate of the user's that goes by the order of rows; only where these come in their order."""
    fit = [each for each in given if each.type in {*INTEGERS, "string"} and each.exact]
    if not fit:
        return None
    one = rng.choice(fit)
    text = combined(("CAST({0} AS string)", "CAST({0} AS VARCHAR)"), "string", one)
    duck = "string_agg({0}, ',' ORDER BY {t}) FILTER ({0} IS NOT NULL)"
    return Aggregate("joined", "joined({0})", duck, "string", True, (text,))


DISTINCT = {"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "array_agg"}


KINDS_OF_AGGREGATES = (
    *("count(*)", "count", "sum", "avg", "min", "max", "first", "last", "bool", "distinct"),
    *("list", "moments", "median", "percentile", "covariance", "mode", "by", "by"),
)


def _small(one: Expr, most: int) -> Expr:
    """Numbers of which sums stay in range; those of doubles are exact enough if numbers are few digits."""
    if one.type == "bigint":
        return combined(f"({{0}} % {most})", "bigint", one)
    return one


def _aggregate(  # noqa: PLR0911, PLR0912, C901 -- a line for each kind
    rng: Random, one: Expr, given: list[Expr]
) -> Aggregate | None:
    kind = rng.choice(KINDS_OF_AGGREGATES)
    number = one.type in NUMBERS and one.exact
    plain = one.type in PLAIN and one.exact
    if kind == "count(*)":
        return Aggregate("count(*)", "count(*)", "count(*)", "bigint", True, ())
    if kind == "count":
        return Aggregate("count", "count({0})", "count({0})", "bigint", True, (one,))
    if kind in {"min", "max"} and plain:
        return Aggregate(kind, f"{kind}({{0}})", f"{kind}({{0}})", one.type, True, (one,))
    if kind in {"sum", "avg"} and number:
        summed = _small(one, rng.choice([1000, 2**57]) if kind == "sum" else 1000)
        type_ = sum_type(one.type) if kind == "sum" else mean_type(one.type)
        exact = one.type in INTEGERS and kind == "sum"
        duck = f"{kind}({{0}})"
        if one.type.startswith("decimal"):
            # Spark divides a decimal sum and rounds half up; DuckDB's avg is a double.
            duck = f"CAST(sum({{0}}) AS {type_})" if kind == "sum" else None
            exact = True
            if duck is None:
                return None
        elif kind == "sum":
            duck = f"CAST(sum({{0}}) AS {'BIGINT' if type_ == 'bigint' else 'DOUBLE'})"
        return Aggregate(kind, f"{kind}({{0}})", duck, type_, exact, (summed,))
    if kind in {"first", "last"} and plain:
        way = "" if kind == "first" else " DESC"
        duck = f"first({{0}} ORDER BY {{t}}{way}, {{0}}{way}) FILTER ({{0}} IS NOT NULL)"
        return Aggregate(kind, f"{kind}({{0}})", duck, one.type, True, (one,))
    if kind == "bool":
        name = rng.choice(["bool_and", "bool_or"])
        return Aggregate(
            name, f"{name}({{0}})", f"{name}({{0}})", "boolean", True, (condition(rng, [one], 1),)
        )
    if kind == "distinct" and plain:
        return Aggregate(
            "count_distinct", "count(DISTINCT {0})", "count(DISTINCT {0})", "bigint", True, (one,)
        )
    if kind == "list" and one.type in {"int", "bigint", "string", "boolean", "date", "timestamp", "smallint"}:
        name = rng.choice(["array_agg", "collect_list"])
        duck = "coalesce(list({0} ORDER BY {t}, {0}) FILTER ({0} IS NOT NULL), [])"
        return Aggregate(name, f"{name}({{0}})", duck, f"array<{one.type}>", True, (one,))
    if kind == "moments" and one.type in {"int", "tinyint", "smallint"}:
        name = rng.choice(["var_pop", "var_samp", "stddev_pop", "stddev_samp"])
        return Aggregate(name, f"{name}({{0}})", f"{name}({{0}})", "double", False, (one,))
    if kind == "median" and one.type in {"int", "tinyint", "smallint"}:
        return Aggregate("median", "median({0})", "CAST(median({0}) AS DOUBLE)", "double", True, (one,))
    if kind == "percentile" and one.type in {"int", "tinyint", "smallint"}:
        share = rng.choice(["0.25", "0.5", "0.9", "1.0"])
        duck = f"quantile_cont({{0}}::DOUBLE, {share})"
        return Aggregate(
            kind, f"percentile({{0}}, {share})", duck, "double", False, (one,), python=f"p={share}"
        )
    if kind == "covariance" and one.type in {"tinyint", "smallint"}:
        name = rng.choice(["covar_pop", "covar_samp"])
        both = one, rng.choice([each for each in given if each.type in {"tinyint", "smallint"}])
        return Aggregate(name, f"{name}({{0}}, {{1}})", f"{name}({{0}}, {{1}})", "double", False, both)
    if kind == "mode" and plain and one.type not in FLOATS:
        duck = "mode_of(list({0}) FILTER ({0} IS NOT NULL))"
        return Aggregate("mode", "mode({0})", duck, one.type, True, (one,))
    if kind == "by" and plain:
        name = rng.choice(["max_by", "min_by"])
        way, nulls = ("DESC", "LAST") if name == "max_by" else ("ASC", "FIRST")
        duck = f"first({{0}} ORDER BY {{1}} {way}, {{0}} {way} NULLS {nulls}) FILTER ({{1}} IS NOT NULL)"
        by = rng.choice([each for each in given if each.type in PLAIN and each.exact])
        return Aggregate(name, f"{name}({{0}}, {{1}})", duck, one.type, True, (one, by))
    return None
