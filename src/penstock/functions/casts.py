"""Casts by the type given and the type wanted; those not listed run in Spark.

A cast to a narrower type raises in ANSI mode where the value does not fit. From a floating point number it
cuts off the fraction, where DuckDB's own would round.
"""

from dataclasses import dataclass
from typing import Final

from penstock.functions.function import ENDS, INTEGERS, SECONDS, has_exact_double

__all__ = ["CASTS", "Cast", "cast_between"]


@dataclass(frozen=True)
class Cast:
    """DuckDB's SQL of a cast, as in a Form, and what its value depends on."""

    sql: str
    raises: bool = False
    zoned: bool = False


_PLAIN: Final = "CAST({0} AS {type})"
_TRUNCATED: Final = (
    "CASE WHEN isnan({{0}}) OR trunc({{0}}) >= {end} OR trunc({{0}}) < -{end} "
    "THEN error('out of range') ELSE CAST(trunc({{0}}) AS {{type}}) END"
)

# Spark compares with the end of the type as a double, which for a bigint is 2^63: so that is no overflow.
_TRUNCATED_BIGINT: Final = (
    f"CASE WHEN {{0}} = {ENDS['bigint']} THEN {2**63 - 1} ELSE {_TRUNCATED.format(end=ENDS['bigint'])} END"
)

CASTS: Final[dict[tuple[str, str], Cast]] = {
    ("float", "double"): Cast(_PLAIN),
    ("boolean", "double"): Cast(_PLAIN),
    ("boolean", "float"): Cast(_PLAIN),
    ("boolean", "string"): Cast(_PLAIN),
    ("double", "boolean"): Cast("{0} <> 0"),
    ("float", "boolean"): Cast("{0} <> 0"),
    ("date", "timestamp"): Cast(_PLAIN, zoned=True),
    ("date", "timestamp_ntz"): Cast(_PLAIN),
    ("date", "string"): Cast(_PLAIN),
    ("timestamp", "date"): Cast(_PLAIN, zoned=True),
    ("timestamp", "string"): Cast(_PLAIN, zoned=True),
    ("timestamp", "timestamp_ntz"): Cast("{0}", zoned=True),
    ("timestamp", "bigint"): Cast(SECONDS),
    ("timestamp_ntz", "date"): Cast(_PLAIN),
    ("timestamp_ntz", "string"): Cast(_PLAIN),
    ("timestamp_ntz", "timestamp"): Cast("{0}", zoned=True),
    ("decimal", "double"): Cast(_PLAIN),
    ("decimal", "string"): Cast(_PLAIN),
    **{
        (given, wanted): Cast(_PLAIN, raises=INTEGERS.index(wanted) < INTEGERS.index(given))
        for given in INTEGERS
        for wanted in INTEGERS
        if given != wanted
    },
    **{(given, "double"): Cast(_PLAIN) for given in INTEGERS},
    **{(given, "string"): Cast(_PLAIN) for given in INTEGERS},
    **{(given, "boolean"): Cast("{0} <> 0") for given in INTEGERS},
    **{("boolean", wanted): Cast(_PLAIN) for wanted in INTEGERS},
    **{("double", wanted): Cast(_TRUNCATED.format(end=end), raises=True) for wanted, end in ENDS.items()},
    ("double", "bigint"): Cast(_TRUNCATED_BIGINT, raises=True),
}


def cast_between(given: str, wanted: str) -> Cast | None:
    """How to cast from one type to another in DuckDB, None if Spark has to."""
    if given == wanted:
        return Cast("{0}")
    kind = "decimal" if given.startswith("decimal(") else given
    if kind == "decimal" and wanted == "double" and not has_exact_double(given):
        return None
    return CASTS.get((kind, wanted))
