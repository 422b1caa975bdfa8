# ruff: noqa: SIM905 -- names in a block of text are easier to read than in quotes
"""Fields, units and patterns of dates and times, checked against what Spark knows when a query is read.

Spark looks at most of these for the first time when a row comes; a query with a wrong one can never run.
"""

import re
from typing import Final

from sqlglot import exp

from penstock.errors import BadExpression
from penstock.expressions.functions import TAKES_UNIT
from penstock.expressions.parsing import Tree, call_name, render

__all__ = ["check_datetimes", "why_bad_pattern"]

_FIELDS: Final = frozenset(
    """
    D DAY DAYOFWEEK DAYOFWEEK_ISO DAYS DOW DOW_ISO DOY H HOUR HOURS HR HRS M MIN MINS MINUTE MINUTES MON MONS
    MONTH MONTHS QTR QUARTER S SEC SECOND SECONDS SECS W WEEK WEEKS Y YEAR YEAROFWEEK YEARS YR YRS
    """.split()
)
_LENGTHS: Final = frozenset("YEAR MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND".split())
_UNITS: Final = _LENGTHS | {"QUARTER", "DAYOFYEAR"}
# The functions with a pattern, by the place of it, and whether they read texts by it.
_PATTERNS: Final = {
    "date_format": (1, False),
    "from_unixtime": (1, False),
    "to_date": (1, True),
    "to_timestamp": (1, True),
    "to_timestamp_ltz": (1, True),
    "to_timestamp_ntz": (1, True),
    "to_unix_timestamp": (1, True),
    "try_to_date": (1, True),
    "try_to_timestamp": (1, True),
    "unix_timestamp": (1, True),
}
_OF_TIMES_TOO: Final = frozenset({"to_char", "to_varchar"})
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
_WEEK_BASED: Final = "YWwuec"
_ONLY_WRITTEN: Final = "EFqQ"
# How many of a letter may stand in a row; what is not here means nothing to Spark.
_RUNS: Final = {
    **dict.fromkeys("GMLEQq", range(1, 5)),
    **dict.fromkeys("hHkKmsd", range(1, 3)),
    **dict.fromkeys("XxZ", range(1, 6)),
    **dict.fromkeys("Ov", (1, 4)),
    **dict.fromkeys("aF", (1,)),
    "y": range(1, 7),
    "D": range(1, 4),
    "S": range(1, 10),
    "z": range(1, 5),
    "V": (2,),
    "g": range(1, 20),
}
_QUOTED: Final = re.compile(r"'[^']*'")


def check_datetimes(node: Tree, first: str | None) -> None:
    """Raise BadExpression for a field, a unit or a pattern that Spark does not know.

    `first` is the type of the first argument of the node, if it is known.
    """
    name = call_name(node) or ""
    if isinstance(node, exp.Extract):
        _check_field(node, node.this.name)
    elif name in {"date_part", "datepart"} and len(node.expressions) == 2:
        if isinstance(node.expressions[0], exp.Literal):
            _check_field(node, node.expressions[0].name)
    elif isinstance(node, exp.Interval):
        unit = node.args.get("unit")
        if isinstance(unit, exp.Var) and unit.name.upper().removesuffix("S") not in _LENGTHS:
            raise BadExpression(f"{render(node)}: no unit {unit.name}; the units are {_listed(_LENGTHS)}")
    elif name in TAKES_UNIT and len(node.expressions) == 3:
        unit = node.expressions[0]
        if unit.name.upper() not in _UNITS:
            raise BadExpression(f"{render(node)}: no unit {unit.name}; the units are {_listed(_UNITS)}")
    elif name in _PATTERNS or (name in _OF_TIMES_TOO and first in _TIMES):
        place, read = _PATTERNS.get(name, (1, False))
        _check_pattern(node, place, read)


def _check_field(node: Tree, field: str) -> None:
    if field.upper() in _FIELDS:
        return
    hint = "for the seconds since 1970 write unix_seconds(time), or unix_micros(time) / 1e6 with the fraction"
    if field.upper() != "EPOCH":
        hint = "the fields are year, quarter, month, week, day, doy, dow, hour, minute, second and yearofweek"
    raise BadExpression(f"{render(node)}: Spark has no field {field.upper()} of a time; {hint}")


def _check_pattern(node: Tree, place: int, read: bool) -> None:  # noqa: FBT001 -- as the table has it
    given = node.expressions[place] if len(node.expressions) > place else None
    if isinstance(given, exp.Literal) and given.is_string:
        why = why_bad_pattern(given.name, read=read)
        if why is not None:
            raise BadExpression(f"{render(node)}: {why}")


def why_bad_pattern(pattern: str, *, read: bool) -> str | None:
    """What is wrong with a pattern of dates and times, which writes texts or reads them; None if nothing is.

    >>> why_bad_pattern("yyyy-MM-dd'T'HH:mm", read=True)
    >>> why_bad_pattern("YYYY-MM-DD", read=False)
    "the pattern 'YYYY-MM-DD' has Y, which counts by weeks and which Spark does not take; write yyyy-MM-dd"
    """
    if "''" in pattern:
        # A quote itself; Java decides where a text between quotes ends.
        return None
    plain = _QUOTED.sub("'", pattern)
    runs = (each[0] for each in re.finditer(r"([A-Za-z])\1*", plain))
    why = next((found for each in runs if (found := _why_bad_run(each, pattern, read=read))), None)
    if pattern.count("'") % 2:
        why = "has a quote that is not closed"
    elif why is None and (set(plain) & set("{}#") or plain.count("]") > plain.count("[")):
        why = "has a bracket or #, which Spark does not take; put text into quotes"
    return None if why is None else f"the pattern '{pattern}' {why}"


def _why_bad_run(run: str, pattern: str, *, read: bool) -> str | None:
    letter = run[0]
    if letter in _WEEK_BASED:
        days = pattern.replace("Y", "y").replace("D", "d")
        meant = f"write {days}" if letter == "Y" else "use extract()"
        return f"has {letter}, which counts by weeks and which Spark does not take; {meant}"
    if letter not in _RUNS or (read and letter in _ONLY_WRITTEN):
        return f"has the letter {letter}, which Spark does not take; put text into quotes: '{letter}'"
    if len(run) not in _RUNS[letter]:
        return (
            f"has {run}, which Spark does not take; it takes {', '.join(letter * n for n in _RUNS[letter])}"
        )
    return None


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))
