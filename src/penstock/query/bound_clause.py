"""The bound of a join in the query language: ``WITHIN 1 HOUR`` or ``LAST 100 ROWS``, after its condition."""

import re
from dataclasses import dataclass
from typing import Final

from penstock.errors import BadDuration, BadJoin
from penstock.expressions.durations import microseconds
from penstock.expressions.parsing import marked

__all__ = ["BOUNDS", "BoundClause", "bound_clause", "opens_bound"]

BOUNDS: Final = "WITHIN 1 HOUR (event time apart) or LAST 100 ROWS"
_OPENING: Final = re.compile(r"within\s+(interval\b|['\d])|last\s+\S+\s+rows?\b", re.IGNORECASE)
_PART: Final = r"'?[\d.]+'?\s*[a-zµ]+\b"
_WITHIN: Final = re.compile(
    rf"within\s+(?P<within>(interval\s+)?('[^']*[a-zµ][^']*'|{_PART}([\s,]+{_PART})*))", re.IGNORECASE
)
_LAST: Final = re.compile(r"last\s+(?P<last>\d+)\s+rows?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BoundClause:
    """Either a duration as written or a number of rows."""

    within: str | None = None
    last: int | None = None


def opens_bound(text: str, start: int) -> bool:
    """Whether a bound begins at this place; a column may be called ``within`` or ``last`` too.

    >>> opens_bound("l.within = r.within", 2), opens_bound("WITHIN 5 MINUTES", 0)
    (False, True)
    """
    return _OPENING.match(text, start) is not None


def bound_clause(text: str, start: int) -> tuple[BoundClause, int]:
    """The bound that begins at this place, and the place after it.

    >>> bound_clause("ON a = b WITHIN 1 HOUR 30 MINUTES WHERE c", 9)
    (BoundClause(within='1 HOUR 30 MINUTES', last=None), 33)
    >>> bound_clause("LAST 5 ROWS", 0)
    (BoundClause(within=None, last=5), 11)
    """
    if match := _LAST.match(text, start):
        return BoundClause(last=int(match["last"])), match.end()
    match = _WITHIN.match(text, start)
    if match is None:
        raise BadJoin(f"cannot read the bound of the join; write {BOUNDS}\n{marked(text, start)}")
    try:
        microseconds(match["within"])
    except BadDuration as error:
        raise BadDuration(f"{error}\n{marked(text, start)}") from error
    return BoundClause(within=match["within"]), match.end()
