"""Casts by the type given and the type wanted; those not listed run in Spark.

A cast to a narrower type raises in ANSI mode where the value does not fit. From a floating point number it
cuts off the fraction, where DuckDB's own would round.
"""

from typing import Final

from penstock.functions.function import INTEGERS

__all__ = ["CASTS", "Cast", "cast_sql"]

Cast = tuple[str, bool, bool]
"""SQL for DuckDB, whether it raises for some values in ANSI mode, whether it depends on the time zone."""

_ENDS: Final = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
CASTS: Final[dict[tuple[str, str], Cast]] = {}

for _given in (*INTEGERS, "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz"):
    CASTS[_given, _given] = ("{0}", False, False)
for _given in INTEGERS:
    for _wanted in INTEGERS:
        if _given != _wanted:
            _narrower = INTEGERS.index(_wanted) < INTEGERS.index(_given)
            CASTS[_given, _wanted] = ("CAST({0} AS {type})", _narrower, False)
    CASTS[_given, "double"] = ("CAST({0} AS DOUBLE)", False, False)
    CASTS[_given, "string"] = ("CAST({0} AS VARCHAR)", False, False)
    CASTS[_given, "boolean"] = ("({0} <> 0)", False, False)
    CASTS["boolean", _given] = ("CAST({0} AS {type})", False, False)
    _end = _ENDS[_given]
    CASTS["double", _given] = (
        f"CASE WHEN isnan({{0}}) OR trunc({{0}}) >= {_end} OR trunc({{0}}) < -{_end} "
        f"THEN error('out of range') ELSE CAST(trunc({{0}}) AS {{type}}) END",
        True,
        False,
    )
CASTS["float", "double"] = ("CAST({0} AS DOUBLE)", False, False)
CASTS["double", "float"] = ("CAST({0} AS FLOAT)", True, False)
CASTS["boolean", "double"] = ("CAST({0} AS DOUBLE)", False, False)
CASTS["boolean", "string"] = ("CAST({0} AS VARCHAR)", False, False)
CASTS["double", "boolean"] = ("({0} <> 0)", False, False)
CASTS["date", "timestamp"] = ("CAST({0} AS TIMESTAMP)", False, True)
CASTS["date", "string"] = ("CAST({0} AS VARCHAR)", False, False)
CASTS["timestamp", "date"] = ("CAST({0} AS DATE)", False, True)
CASTS["timestamp", "string"] = ("CAST({0} AS VARCHAR)", False, True)
CASTS["timestamp", "bigint"] = (
    "((epoch_us({0}) - ((epoch_us({0}) % 1000000) + 1000000) % 1000000) // 1000000)",
    False,
    False,
)
CASTS["decimal", "double"] = ("CAST({0} AS DOUBLE)", False, False)
CASTS["decimal", "string"] = ("CAST({0} AS VARCHAR)", False, False)


def cast_sql(given: str, wanted: str) -> Cast | None:
    """How to cast from one type to another in DuckDB, None if Spark has to."""
    if given == wanted:
        return "{0}", False, False
    kind = "decimal" if given.startswith("decimal(") else given
    return CASTS.get((kind, wanted))
