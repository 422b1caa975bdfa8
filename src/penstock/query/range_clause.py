"""The window clause of the query language: ``[RANGE 60 MINUTES SLIDE 1 MINUTE OFFSET 10 SECONDS]``."""

import re
from dataclasses import dataclass
from typing import Final

from penstock.errors import BadWindow
from penstock.expressions.parsing import marked

__all__ = ["EXAMPLE", "RangeClause", "range_clause"]

EXAMPLE: Final = "FROM reports [RANGE 60 MINUTES SLIDE 1 MINUTE]"
_FORM: Final = re.compile(
    r"\s*range\s+(?P<size>.+?)(\s+slide\s+(?P<slide>.+?))?(\s+offset\s+(?P<offset>.+?))?\s*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RangeClause:
    """The durations of a window clause as written; the slide defaults to the range."""

    size: str
    slide: str | None
    offset: str | None


def range_clause(text: str, start: int, end: int) -> RangeClause:
    """The clause between the brackets at these places of a statement.

    >>> range_clause("FROM s [RANGE 5 MINUTES]", 7, 23)
    RangeClause(size='5 MINUTES', slide=None, offset=None)
    """
    match = _FORM.fullmatch(text[start + 1 : end])
    if match is None:
        raise BadWindow(
            f"cannot read the window {text[start : end + 1]}; write it as in {EXAMPLE}\n{marked(text, start)}"
        )
    return RangeClause(match["size"], match["slide"], match["offset"])
