"""Windows and bounds of joins, cut out of a statement so that what is left is plain SQL.

A clause belongs to the innermost SELECT around it, a bound to the JOIN before it. Blanks take the place
of what is cut, so that a place in the rest is still the place in what the user wrote.
"""

from dataclasses import dataclass, field
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import BadExpression, BadJoin, BadWindow
from penstock.expressions.parsing import marked, tokens_of
from penstock.query.bound_clause import BoundClause, bound_clause, opens_bound
from penstock.query.range_clause import EXAMPLE, RangeClause, range_clause

__all__ = ["Clauses", "cut_clauses"]

_BEFORE_SELECT: Final = frozenset({"", "(", "FROM", "JOIN", "AS", "ALL"})
_SETS: Final = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
_AFTER_FROM: Final = frozenset(
    {TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT}
)


@dataclass(slots=True)
class Clauses:
    """What was cut out of one SELECT, and where it stood.

    ``joins`` counts the JOINs, and ``window_after`` those before the window; ``bounds`` has the bound of
    each join by its number from 0; ``comma`` is the place of a comma between tables.
    """

    joins: int = 0
    window: RangeClause | None = None
    window_after: int = 0
    bounds: dict[int, BoundClause] = field(default_factory=dict)
    comma: int | None = None


@dataclass(slots=True)
class _Level:
    """One pair of parentheses, or one side of a UNION, while it is read; a call holds no SELECT."""

    call: bool = False
    opening: TokenType | None = None
    select: Clauses | None = None
    in_from: bool = False


def cut_clauses(text: str) -> tuple[str, tuple[Clauses, ...]]:
    """The statement with blanks in place of its clauses, and those of each SELECT in the order of the text.

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

    def _take(self, number: int, token: Token) -> None:
        level, kind = self.levels[-1], token.token_type
        level.opening = level.opening or kind
        if kind == TokenType.L_PAREN:
            self.levels.append(_Level(call=self._word(number - 1) not in _BEFORE_SELECT))
        elif kind == TokenType.R_PAREN and len(self.levels) > 1:
            self.levels.pop()
        elif kind in _SETS:
            self.levels[-1] = _Level()
        elif kind in _STATES:
            self._enter(level, kind, after=self._word(number - 1))
        elif kind == TokenType.L_BRACKET and self._word(number + 1) == "RANGE":
            self._cut_window(level, number)
        elif kind == TokenType.VAR and opens_bound(self.text, token.start):
            self._cut_bound(level, token)
        elif kind == TokenType.PIPE_GT:
            raise BadExpression(
                f"|> is not supported; write SELECT … FROM …\n{marked(self.text, token.start)}"
            )
        elif kind == TokenType.COMMA and level.in_from and level.select and level.select.comma is None:
            level.select.comma = token.start

    def _enter(self, level: _Level, kind: TokenType, after: str) -> None:
        # FROM alone begins a SELECT only at the start: extract(year FROM time) has one as well.
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
                f"a window stands in FROM, after the last table: {EXAMPLE}\n{marked(self.text, start)}"
            )
        if level.select.window is not None:
            raise BadWindow(
                "this SELECT has a second window; one is supported, and a sub-query in FROM may have its own"
                f"\n{marked(self.text, start)}"
            )
        level.select.window = range_clause(self.text, start, end)
        level.select.window_after = level.select.joins
        self.cuts.append((start, end + 1))

    def _cut_bound(self, level: _Level, token: Token) -> None:
        found, end = bound_clause(self.text, token.start)
        select = level.select
        if select is None or not level.in_from or not select.joins:
            raise BadJoin(
                "a bound stands after the condition of a JOIN: FROM a JOIN b ON a.x = b.x WITHIN 1 HOUR"
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


_STATES: Final = _AFTER_FROM | {TokenType.SELECT, TokenType.FROM, TokenType.JOIN}
