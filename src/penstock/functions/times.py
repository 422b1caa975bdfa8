"""Dates and timestamps, in UTC where a clock on the wall is read off.

DuckDB gets timestamps without a zone, as the time in UTC. In a session of another zone, `zoned` forms are
not certified, and Spark evaluates them.
"""

from penstock.functions.function import SECONDS, Form, define

__all__: list[str] = []

_CLOCK = ("timestamp",)


def _parts(names: str, sql: str) -> None:
    define(
        "time",
        names,
        Form(("date",), "int", sql),
        Form(_CLOCK, "int", sql, zoned=True),
        Form(("timestamp_ntz",), "int", sql),
    )


for _names, _duck in (
    ("year", "year({0})"),
    ("month", "month({0})"),
    ("day dayofmonth", "day({0})"),
    ("quarter", "quarter({0})"),
    ("dayofyear", "dayofyear({0})"),
    ("dayofweek", "dayofweek({0}) + 1"),
    ("weekday", "isodow({0}) - 1"),
    ("weekofyear", "weekofyear({0})"),
):
    _parts(_names, f"CAST({_duck} AS INTEGER)")
for _name in ("hour", "minute", "second"):
    define(
        "time",
        _name,
        Form(_CLOCK, "int", f"CAST({_name}({{0}}) AS INTEGER)", zoned=True),
        Form(("timestamp_ntz",), "int", f"CAST({_name}({{0}}) AS INTEGER)"),
    )

for _name, _format in (("monthname", "%b"), ("dayname", "%a")):
    define(
        "time",
        _name,
        Form(("date",), "string", f"strftime({{0}}, '{_format}')"),
        Form(_CLOCK, "string", f"strftime({{0}}, '{_format}')", zoned=True),
    )
define("time", "unix_micros", Form(_CLOCK, "bigint", "epoch_us({0})"))
define(
    "time",
    "unix_millis",
    Form(_CLOCK, "bigint", "(epoch_us({0}) - ((epoch_us({0}) % 1000) + 1000) % 1000) // 1000"),
)
define("time", "unix_seconds", Form(_CLOCK, "bigint", SECONDS))
# Towards 1970, not towards the past.
define("time", "unix_timestamp to_unix_timestamp", Form(_CLOCK, "bigint", "epoch_us({0}) // 1000000"))
define("time", "timestamp_micros", Form(("bigint",), "timestamp", "make_timestamp({0})"))
define("time", "timestamp_millis", Form(("bigint",), "timestamp", "make_timestamp({0} * 1000)", raises=True))
define(
    "time", "timestamp_seconds", Form(("bigint",), "timestamp", "make_timestamp({0} * 1000000)", raises=True)
)
define(
    "time",
    "to_timestamp",
    Form(_CLOCK, "timestamp", "{0}"),
    Form(("date",), "timestamp", "CAST({0} AS TIMESTAMP)", zoned=True),
)
define("time", "unix_date", Form(("date",), "int", "CAST({0} - DATE '1970-01-01' AS INTEGER)"))
define("time", "date_from_unix_date", Form(("int",), "date", "(DATE '1970-01-01' + {0})"))
define("time", "date_add dateadd", Form(("date", "int"), "date", "({0} + {1})"))
define("time", "date_sub", Form(("date", "int"), "date", "({0} - {1})"))
define("time", "datediff date_diff", Form(("date", "date"), "int", "CAST({0} - {1} AS INTEGER)"))
define("time", "add_months", Form(("date", "int"), "date", "CAST({0} + to_months({1}) AS DATE)"))
define("time", "last_day", Form(("date",), "date", "last_day({0})"))
define("time", "make_date", Form(("int", "int", "int"), "date", "make_date({0}, {1}, {2})", raises=True))
define(
    "time", "to_date", Form(("date",), "date", "{0}"), Form(_CLOCK, "date", "CAST({0} AS DATE)", zoned=True)
)
define("time", "date", Form(("date",), "date", "{0}"), Form(_CLOCK, "date", "CAST({0} AS DATE)", zoned=True))

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
    "WEEK": 7 * 86400 * 10**6,
}
"""Units of a fixed length in UTC, in microseconds."""
_BETWEEN = "CAST((epoch_us({2}) - epoch_us({1})) // CAST({unit} AS BIGINT) AS BIGINT)"
define(
    "time",
    "timestampdiff",
    Form(("unit", "timestamp", "timestamp"), "bigint", _BETWEEN, zoned=True),
    Form(("unit", "timestamp_ntz", "timestamp_ntz"), "bigint", _BETWEEN),
)
define(
    "time",
    "timestampadd",
    Form(
        ("unit", "int", "timestamp"),
        "timestamp",
        "make_timestamp(epoch_us({2}) + CAST({1} AS BIGINT) * CAST({unit} AS BIGINT))",
        zoned=True,
        raises=True,
    ),
)
_TRUNCATED = {
    "YEAR",
    "YYYY",
    "YY",
    "QUARTER",
    "MONTH",
    "MM",
    "MON",
    "WEEK",
    "DAY",
    "DD",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
}
_DUCK_UNITS = (
    "CASE upper({0}) WHEN 'YYYY' THEN 'year' WHEN 'YY' THEN 'year' WHEN 'MM' THEN 'month' "
    "WHEN 'MON' THEN 'month' WHEN 'DD' THEN 'day' ELSE lower({0}) END"
)
define(
    "time",
    "date_trunc",
    Form(
        ("string", "timestamp"),
        "timestamp",
        f"CAST(date_trunc({_DUCK_UNITS}, {{1}}) AS TIMESTAMP)",
        literals={0: lambda text: text.upper() in _TRUNCATED},
        zoned=True,
    ),
)
define(
    "time",
    "trunc",
    Form(
        ("date", "string"),
        "date",
        f"CAST(date_trunc({_DUCK_UNITS.replace('{0}', '{1}')}, {{0}}) AS DATE)",
        literals={
            1: lambda text: (
                text.upper() in _TRUNCATED - {"DAY", "DD", "HOUR", "MINUTE", "SECOND", "MILLISECOND"}
            )
        },
    ),
)
