"""The window clause of the query language: ``[RANGE 60 MINUTES SLIDE 1 MINUTE OFFSET 10 SECONDS]``."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import TokenType

from penstock.errors import BadWindow
from penstock.query.parsing import marked, tokens_of

__all__ = ["RangeClause", "cut_range_clause"]

_FORM: Final = re.compile(
    r"\s*range\s+(?P<size>.+?)(\s+slide\s+(?P<slide>.+?))?(\s+offset\s+(?P<offset>.+?))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_EXAMPLE: Final = "FROM reports [RANGE 60 MINUTES SLIDE 1 MINUTE]"


@dataclass(frozen=True, slots=True)
class RangeClause:
    """The durations of a window clause as written; the slide defaults to the range."""

    size: str
    slide: str | None
    offset: str | None


def cut_range_clause(text: str) -> tuple[str, RangeClause]:
    """The statement with blanks in place of its window clause, and the clause.

    Blanks, so that a place in the rest is still the place in what the user wrote.

    >>> cut_range_clause("SELECT 1 FROM s [RANGE 5 MINUTES]")
    ('SELECT 1 FROM s                  ', RangeClause(size='5 MINUTES', slide=None, offset=None))
    """
    places = _places(text)
    if not places:
        raise BadWindow(f"the statement has no window; write one after the stream's name: {_EXAMPLE}")
    if len(places) > 1:
        raise BadWindow(f"the statement has a second window; one is supported\n{marked(text, places[1][0])}")
    start, end = places[0]
    match = _FORM.fullmatch(text[start + 1 : end])
    if match is None:
        raise BadWindow(f"cannot read the window {text[start : end + 1]}; write it as in {_EXAMPLE}")
    clause = RangeClause(match["size"], match["slide"], match["offset"])
    return text[:start] + " " * (end + 1 - start) + text[end + 1 :], clause


def _places(text: str) -> list[tuple[int, int]]:
    tokens = tokens_of(text)
    starts = [
        left.start
        for left, right in pairwise(tokens)
        if left.token_type == TokenType.L_BRACKET and text[right.start : right.end + 1].upper() == "RANGE"
    ]
    ends = [each.start for each in tokens if each.token_type == TokenType.R_BRACKET]
    return [(start, _next(ends, start, text)) for start in starts]


def _next(ends: list[int], start: int, text: str) -> int:
    for end in ends:
        if end > start:
            return end
    raise BadWindow(f"the window is not closed by ]\n{marked(text, start)}")
