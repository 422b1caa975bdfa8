"""Edge values and random values of every type, and expressions evaluated by Spark and in a channel."""

import datetime as dt
import math
import random
import re
import string
from decimal import Context, Decimal

import pyarrow as pa
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from penstock.expressions.duck import cursor, evaluate
from penstock.expressions.types import arrow_type
from penstock.functions import translated

ERROR = "error"
UTC = dt.UTC
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS_OF_A_TYPE = 3
DRAWN = 60
EXACT = Context(prec=38)
EDGES = {
    "tinyint": [-128, -7, -1, 0, 1, 2, 3, 127, None],
    "smallint": [-(2**15), -7, -1, 0, 1, 2, 2**15 - 1, None],
    "int": [-(2**31), -100, -7, -3, -1, 0, 1, 2, 3, 5, 12, 20, 29, 256, 2024, 2**31 - 1, None],
    "bigint": [-(2**63), -(2**31) - 1, -7, -1, 0, 1, 2, 3, 65, 233, 10**15, 2**63 - 1, None],
    "float": [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.5, 3.25, 1e30, None],
    "double": [
        *(math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 0.5, 1.5, -1.5, 2.5, -2.5),
        *(1e300, 99999.999, 9.2e18, 2.0**63, -(2.0**63), 4503599627370497.5, None),
    ],
    "decimal(10,2)": [*map(Decimal, ("-99999999.99", "-1.50", "0.00", "0.01", "2.50")), None],
    "decimal(5,0)": [Decimal(-99999), Decimal(0), Decimal(7), None],
    "decimal(38,3)": [Decimal("-1" + "0" * 34 + ".125"), Decimal("0.001"), Decimal("9" * 35 + ".999"), None],
    "string": [
        *("", "a", "A b", " x ", "héllo", "日本語", "a,b,c", "l", "%", "a%", "1", "straße", "ÀÉ", "é"),
        *("e\u0301x", "😀y", "a\nb", "İ", "ǅ", "Σς", "_", "ab ab", "\u00a0x\u00a0", "\tx", None),
    ],
    "boolean": [True, False, None],
    "date": [
        *(dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(1900, 2, 28), dt.date(1969, 12, 31)),
        *(dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2021, 1, 3), dt.date(2024, 1, 31)),
        *(dt.date(2024, 12, 30), dt.date(9999, 12, 31), None),
    ],
    "timestamp": [
        dt.datetime(1900, 1, 1, 0, 0, 0, 1, UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        _EPOCH,
        dt.datetime(2000, 2, 29, 12, 34, 56, 789000, UTC),
        dt.datetime(2024, 3, 10, 7, 30, 0, 100000, UTC),
        dt.datetime(2024, 3, 10, 7, 30, 1, 99999, UTC),
        dt.datetime(2024, 12, 30, 23, 59, 59, 999999, UTC),
        None,
    ],
}
EDGES["timestamp_ntz"] = [each and each.replace(tzinfo=None) for each in EDGES["timestamp"]]
_LETTERS = string.ascii_letters + string.digits + " ,.%_éßñ日😀"
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


def random_values(kind):  # noqa: PLR0911 -- a line for each kind
    """Any values of a type, small numbers and short texts of usual letters more often than others."""
    if kind in _BITS:
        return st.integers(-40, 40) | st.integers(-(2 ** _BITS[kind]), 2 ** _BITS[kind] - 1)
    if kind == "float":
        return st.integers(-4000, 4000).map(lambda eighths: eighths / 8) | st.floats(width=32)
    if kind == "double":
        return st.floats(-50, 50) | st.floats()
    if kind.startswith("decimal("):
        digits, scale = map(int, kind[8:-1].split(","))
        return st.integers(1 - 10**digits, 10**digits - 1).map(
            lambda whole: Decimal(whole).scaleb(-scale, EXACT)
        )
    if kind == "string":
        return st.text(_LETTERS, max_size=9) | st.text(max_size=9)
    if kind == "boolean":
        return st.booleans()
    if kind == "date":
        return st.dates()
    return st.datetimes(timezones=st.just(UTC) if kind == "timestamp" else st.none())


def names_of(kind):
    """The columns of a type in the table of values."""
    plain = "".join(each if each.isalnum() else "_" for each in kind)
    return [f"{plain}_{place}" for place in range(COLUMNS_OF_A_TYPE)]


TYPES = {name: kind for kind in EDGES for name in names_of(kind)}
"""The type of every column in the table of values."""


def table_of_values(number, rows):
    """A table with some columns of every type: edge values and random ones, in any combination, from a seed.

    Hypothesis draws the random values, many at a time and before any test: a query of Spark takes a second,
    however few its rows, so it is asked about all of them at once. They cannot be shrunk then.
    """
    drawn = {kind: drawn_values(kind, number) for kind in EDGES}
    chance = random.Random(number)
    columns = {}
    for name, kind in TYPES.items():
        values = [chance.choice(EDGES[kind] if chance.random() < 0.6 else drawn[kind]) for _ in range(rows)]
        columns[name] = pa.array(values, arrow_type(kind))
    return pa.table(columns)


def drawn_values(kind, number):
    """Random values of a type."""
    found = []

    # The first example of hypothesis is the simplest; later ones repeat parts of those before.
    @seed(number)
    @settings(max_examples=2, phases=[Phase.generate], database=None)
    @given(st.lists(random_values(kind), min_size=DRAWN, max_size=DRAWN))
    def draw(values):
        found.append(values)

    draw()
    return found[-1]


def frame_of(spark, table):
    """The table in Spark, with the number of each row."""
    numbered = table.append_column("row", [list(range(table.num_rows))])
    casts = (f"cast({name} as {kind}) as {name}" for name, kind in TYPES.items())
    return spark.createDataFrame(numbered).selectExpr(*casts, "row").localCheckpoint()


def channel_values(sql, table):
    """The translation and its values in a channel, `ERROR` where it raises; Uncertified if there is none."""
    found = translated(sql, TYPES)
    columns = [name for name in TYPES if f'"{name}"' in found.sql]
    return found, _channel(found, table.select(columns or list(TYPES)[:1]))


def _channel(found, table):
    import duckdb

    try:
        return _checked(found, table)
    except (duckdb.Error, pa.ArrowInvalid):
        fine = _without_error(found, table)
    of_row = dict(zip(fine, _checked(found, table.take(pa.array(fine, pa.int64()))), strict=True))
    return [of_row.get(row, ERROR) for row in range(table.num_rows)]


def _checked(found, table):
    values = evaluate(f"SELECT {found.sql} AS v FROM input", table)["v"]
    # Later steps build on the type that DuckDB has, so it has to be the one that is claimed.
    assert _plain_type(values.type) == _plain_type(arrow_type(found.type)), (found, values.type)
    return listed(values)


def _without_error(found, table):
    """The rows for which DuckDB raises no error."""
    import duckdb

    connection = cursor()
    connection.register("input", table.append_column("row_here", [list(map(str, range(table.num_rows)))]))
    # TRY takes no volatile function such as error(), so a cast that fails stands in for it, of either type.
    fails = "CAST('x' || row_here AS TINYINT)"
    for instead in (fails, f"CAST({fails} AS VARCHAR)"):
        sql = re.sub(r"error\('[^']*'\)", instead, found.sql)
        try:
            # TRY gives null where its expression raises, and IS NULL is never null.
            tested = connection.sql(f"SELECT TRY(({sql}) IS NULL) AS v FROM input").to_arrow_table()
        except duckdb.Error:
            continue
        return [row for row, null in enumerate(tested["v"].to_pylist()) if null is not None]
    return _halved(found, table, 0, table.num_rows)


def _halved(found, table, first, end):
    """The rows from `first` to `end` without an error, by trying them together and then in halves."""
    import duckdb

    try:
        evaluate(f"SELECT {found.sql} AS v FROM input", table.slice(first, end - first))
    except (duckdb.Error, pa.ArrowInvalid):
        if end - first == 1:
            return []
        middle = (first + end) // 2
        return _halved(found, table, first, middle) + _halved(found, table, middle, end)
    return list(range(first, end))


def listed(values):
    """Values of a column for Python; times as numbers, since Python's end with the year 9999."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).to_pylist()
    return values.to_pylist()


def _plain_type(kind):
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def spark_values(frame, texts, raising):
    """The types and the values of expressions in Spark, in one job.

    A row of which a channel says that an expression raises is left out for this expression. If Spark raises
    for any other row, the expression is found by halving, and its values are `ERROR`.
    """
    from pyspark.errors import PySparkException

    columns = [
        f"CASE WHEN row IN ({', '.join(map(str, raising[text]))}) THEN NULL ELSE {text} END AS v{place}"
        if raising.get(text)
        else f"{text} AS v{place}"
        for place, text in enumerate(texts)
    ]
    asked = frame.selectExpr("row", *columns)
    types = [each.dataType.simpleString() for each in asked.schema][1:]
    try:
        found = asked.toArrow().sort_by("row")
    except PySparkException:
        if len(texts) == 1:
            return {texts[0]: (types[0], [ERROR] * frame.count())}
        half = len(texts) // 2
        return spark_values(frame, texts[:half], raising) | spark_values(frame, texts[half:], raising)
    return {text: (types[place], listed(found[f"v{place}"])) for place, text in enumerate(texts)}


def raises_in_spark(frame, text, row):
    """Whether Spark raises for a row."""
    from pyspark.errors import PySparkException

    try:
        frame.where(f"row = {row}").selectExpr(f"{text} AS v").toArrow()
    except PySparkException:
        return True
    return False


def plain(value):
    """A value for comparison: NaN equals NaN, and the sign of a zero counts."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value
