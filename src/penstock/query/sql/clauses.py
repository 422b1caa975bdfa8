"""Windows and join bounds, cut out of a statement so that the rest is plain SQL.

A clause belongs to the innermost SELECT around it, a bound to the JOIN before it. Blanks replace what is
cut, so that a position in the rest is still the position in the user's text.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import BadDuration, BadExpression, BadJoin, BadWindow
from penstock.expressions.durations import microseconds
from penstock.expressions.parsing import marked, tokens_of
from penstock.query.sql.windows import WindowClause

__all__ = [
    "BOUNDS",
    "EXAMPLE",
    "BoundClause",
    "Clauses",
    "RangeClause",
    "bound_clause",
    "cut_clauses",
    "range_clause",
]

_BEFORE_SELECT: Final = frozenset({"", "(", "FROM", "JOIN", "AS", "ALL"})
_SETS: Final = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_AFTER_FROM: Final = frozenset(
    {TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT}
)
EXAMPLE: Final = "FROM reports [RANGE 60 MINUTES SLIDE 1 MINUTE]"
_RANGE: Final = re.compile(
    r"\s*range\s+(?P<size>.+?)(\s+slide\s+(?P<slide>.+?))?(\s+offset\s+(?P<offset>.+?))?\s*",
    re.IGNORECASE | re.DOTALL,
)
BOUNDS: Final = (
    "WITHIN 1 HOUR (event time apart), KEEP 1 DAY or KEEP FOREVER (how long rows wait) or LAST 100 ROWS"
)
_BOUND: Final = re.compile(
    r"(within|keep)\s+(interval\b|['\d])|keep\s+forever\b|last\s+\S+\s+rows?\b", re.IGNORECASE
)
_FOREVER: Final = re.compile(r"keep\s+forever\b", re.IGNORECASE)
_PART: Final = r"'?[\d.]+'?\s*[a-zµ]+\b"
_WITHIN: Final = re.compile(
    rf"(?P<kind>within|keep)\s+(?P<within>(interval\s+)?('[^']*[a-zµ][^']*'|{_PART}([\s,]+{_PART})*))",
    re.IGNORECASE,
)
_LAST: Final = re.compile(r"last\s+(?P<last>\d+)\s+rows?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RangeClause:
    """The durations of a window clause as written; the slide defaults to the range."""

    size: str
    slide: str | None
    offset: str | None


def range_clause(text: str, start: int, end: int) -> RangeClause:
    """The clause between the brackets at these positions of a statement.

    >>> range_clause("FROM s [RANGE 5 MINUTES]", 7, 23)
    RangeClause(size='5 MINUTES', slide=None, offset=None)
    """
    match = _RANGE.fullmatch(text[start + 1 : end])
    if match is None:
        raise BadWindow(
            f"cannot read the window {text[start : end + 1]}; write it as in {EXAMPLE}\n{marked(text, start)}"
        )
    return RangeClause(match["size"], match["slide"], match["offset"])


@dataclass(frozen=True, slots=True)
class BoundClause:
    """A distance in time, a number of rows, a time to live, or windows that both sides share."""

    within: str | None = None
    last: int | None = None
    keep: str | None = None
    window: WindowClause | None = None

    @property
    def distance(self) -> str | None:
        """How far apart in event time two rows may be, if that is bounded."""
        return self.within or (None if self.keep == "forever" else self.keep)


def opens_bound(text: str, start: int) -> bool:
    """Whether a bound begins at this position; a column may also have the name ``within`` or ``last``.

    >>> opens_bound("l.within = r.within", 2), opens_bound("WITHIN 5 MINUTES", 0)
    (False, True)
    """
    return _BOUND.match(text, start) is not None


def bound_clause(text: str, start: int) -> tuple[BoundClause, int]:
    """The bound that begins at this position, and the position after it.

    >>> bound_clause("ON a = b WITHIN 1 HOUR 30 MINUTES WHERE c", 9)
    (BoundClause(within='1 HOUR 30 MINUTES', last=None, keep=None, window=None), 33)
    >>> bound_clause("KEEP FOREVER", 0)
    (BoundClause(within=None, last=None, keep='forever', window=None), 12)
    >>> bound_clause("LAST 5 ROWS", 0)
    (BoundClause(within=None, last=5, keep=None, window=None), 11)
    """
    if match := _LAST.match(text, start):
        return BoundClause(last=int(match["last"])), match.end()
    if match := _FOREVER.match(text, start):
        return BoundClause(keep="forever"), match.end()
    match = _WITHIN.match(text, start)
    if match is None:
        raise BadJoin(f"cannot read the bound of the join; write {BOUNDS}\n{marked(text, start)}")
    try:
        microseconds(match["within"])
    except BadDuration as error:
        raise BadDuration(f"{error}\n{marked(text, start)}") from error
    keep = match["kind"].lower() == "keep"
    found = BoundClause(keep=match["within"]) if keep else BoundClause(within=match["within"])
    return found, match.end()


@dataclass(slots=True)
class Clauses:
    """The clauses cut out of one SELECT, and their positions.

    ``joins`` counts the JOINs, and ``window_after`` those before the window. ``bounds`` has the bound of
    each join by its number from 0, and ``query_bounds`` that of each sub-query in WHERE, of which there are
    ``queries``. ``comma`` is the position of a comma between tables.
    """

    joins: int = 0
    window: RangeClause | None = None
    window_after: int = 0
    bounds: dict[int, BoundClause] = field(default_factory=dict)
    comma: int | None = None
    queries: int = 0
    query_bounds: dict[int, BoundClause] = field(default_factory=dict)


@dataclass(slots=True)
class _Level:
    """One pair of parentheses, or one side of a UNION, during parsing; a call holds no SELECT."""

    call: bool = False
    opening: TokenType | None = None
    select: Clauses | None = None
    in_from: bool = False


def cut_clauses(text: str) -> tuple[str, tuple[Clauses, ...]]:
    """The statement with blanks in place of its clauses, and the clauses of each SELECT in text order.

    >>> rest, (found,) = cut_clauses("SELECT x FROM a JOIN b ON a.i = b.i LAST 5 ROWS [RANGE 5 MINUTES]")
    >>> rest.rstrip(), found.bounds[0].last, found.window.size
    ('SELECT x FROM a JOIN b ON a.i = b.i', 5, '5 MINUTES')
    """
    reader = _Reader(text)
    reader.read()
    rest = text
    for start, end in reader.cuts:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    return rest, tuple(reader.selects)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.levels = [_Level()]
        self.selects: list[Clauses] = []
        self.cuts: list[tuple[int, int]] = []

    def read(self) -> None:
        for number, token in enumerate(self.tokens):
            if not self.cuts or token.start >= self.cuts[-1][1]:
                self._take(number, token)

    def _check(self, number: int, token: Token) -> None:
        if token.token_type == TokenType.PIPE_GT:
            raise BadExpression(
                f"|> is not supported; write SELECT … FROM …\n{marked(self.text, token.start)}"
            )
        if token.token_type == TokenType.USING and [self._word(number + at) for at in (1, 2)] == ["(", ")"]:
            # The parser drops it, and every pair would be one.
            raise BadJoin(
                "USING () names no column; name those that are equal, or write CROSS JOIN"
                f"\n{marked(self.text, token.start)}"
            )

    def _take(self, number: int, token: Token) -> None:
        self._check(number, token)
        level, kind = self.levels[-1], token.token_type
        level.opening = level.opening or kind
        if kind == TokenType.L_PAREN:
            self.levels.append(_Level(call=self._word(number - 1) not in _BEFORE_SELECT))
        elif kind == TokenType.R_PAREN and len(self.levels) > 1:
            inner, outer = self.levels.pop(), self.levels[-1]
            if inner.select is not None and outer.select is not None and not outer.in_from:
                outer.select.queries += 1
        elif kind in _SETS:
            self.levels[-1] = _Level()
        elif kind in _STATES:
            self._enter(level, kind, after=self._word(number - 1))
        elif kind == TokenType.L_BRACKET and self._word(number + 1) == "RANGE":
            self._cut_window(level, number)
        elif kind in _BOUND_WORDS and opens_bound(self.text, token.start):
            self._cut_bound(level, token)
        elif kind == TokenType.COMMA and level.in_from and level.select and level.select.comma is None:
            level.select.comma = token.start

    def _enter(self, level: _Level, kind: TokenType, after: str) -> None:
        # FROM begins a SELECT only at the start: extract(year FROM time) has one too.
        begins = not level.call and level.opening in {TokenType.FROM, TokenType.WITH}
        if level.select is None:
            if kind == TokenType.SELECT or (kind == TokenType.FROM and begins):
                level.select = Clauses()
                level.in_from = kind == TokenType.FROM
                self.selects.append(level.select)
        elif kind == TokenType.JOIN:
            level.select.joins += 1
        elif kind == TokenType.FROM:
            level.in_from = level.in_from or after != "DISTINCT"
        else:
            level.in_from = False

    def _cut_window(self, level: _Level, number: int) -> None:
        start = self.tokens[number].start
        later = self.tokens[number:]
        end = next((each.start for each in later if each.token_type == TokenType.R_BRACKET), None)
        if end is None:
            raise BadWindow(f"the window is not closed by ]\n{marked(self.text, start)}")
        if level.select is None or not level.in_from:
            raise BadWindow(
                f"a window belongs in FROM, after the last table: {EXAMPLE}\n{marked(self.text, start)}"
            )
        if level.select.window is not None:
            raise BadWindow(
                "this SELECT has a second window; give it one, and put the other into a sub-query in FROM"
                f"\n{marked(self.text, start)}"
            )
        level.select.window = range_clause(self.text, start, end)
        level.select.window_after = level.select.joins
        self.cuts.append((start, end + 1))

    def _cut_bound(self, level: _Level, token: Token) -> None:
        found, end = bound_clause(self.text, token.start)
        select = level.select
        if select is not None and not level.in_from and select.queries:
            select.query_bounds[select.queries - 1] = found
            self.cuts.append((token.start, end))
            return
        if select is None or not level.in_from or not select.joins:
            raise BadJoin(
                "a bound belongs after the condition of a JOIN: FROM a JOIN b ON a.x = b.x WITHIN 1 HOUR"
                f"\n{marked(self.text, token.start)}"
            )
        if select.joins - 1 in select.bounds:
            raise BadJoin(f"this JOIN has a second bound; give it one\n{marked(self.text, token.start)}")
        select.bounds[select.joins - 1] = found
        self.cuts.append((token.start, end))

    def _word(self, number: int) -> str:
        if not 0 <= number < len(self.tokens):
            return ""
        token = self.tokens[number]
        return self.text[token.start : token.end + 1].upper()


_BOUND_WORDS: Final = frozenset({TokenType.VAR, TokenType.KEEP})
_STATES: Final = _AFTER_FROM | {TokenType.SELECT, TokenType.FROM, TokenType.JOIN}
