"""Splits in the query language: ``SPLIT reports CASE WHEN … THEN fast … ELSE rest END``.

That is the filter with m + 1 outputs (002, section II.A), each of which gets a name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import BadExpression, BadName
from penstock.expressions.parsing import Tree, marked, parse_scalar, render, tokens_of
from penstock.query.sql_scope import mark

__all__ = ["Split", "split_of"]

_FORM: Final = "SPLIT reports CASE WHEN speed > 100 THEN fast WHEN speed < 5 THEN slow ELSE rest END"


@dataclass(frozen=True)
class Split:
    """The tables of a split as a statement that begins with FROM, its conditions, and the outputs' names.

    Without ELSE there is no name for the last output, and nothing reads it.
    """

    tables: str
    conditions: tuple[Tree, ...]
    names: tuple[str, ...]


def split_of(text: str) -> Split | None:
    """The split that a text states, None if it is a SELECT.

    >>> found = split_of("SPLIT calls CASE kind WHEN 'a' THEN first ELSE others END")
    >>> found.tables, render(found.conditions[0]), found.names
    ('FROM  calls ', "kind = 'a'", ('first', 'others'))
    """
    outside = list(_outside_parentheses(text))
    start = _start(outside)
    if start is None:
        return None
    later = [each for each in outside if each.start > start.start and each.token_type == TokenType.CASE]
    if not later:
        raise BadExpression(f"SPLIT without a CASE; write {_FORM}\n{marked(text, start.start)}")
    place = later[0].start
    # FROM is as long as SPLIT with the blank, so that places stay what they are.
    tables = f"{text[: start.start]}FROM {text[start.end + 1 : place]}"
    case = parse_scalar(" " * place + text[place:], text)
    if not isinstance(case, exp.Case):
        raise BadExpression(f"a SPLIT ends with its CASE; write {_FORM}\n{marked(text, place)}")
    return Split(tables, tuple(_conditions(case)), tuple(_names(case, text)))


def _outside_parentheses(text: str) -> Iterator[Token]:
    depth = 0
    for each in tokens_of(text):
        depth -= each.token_type == TokenType.R_PAREN
        if depth == 0:
            yield each
        depth += each.token_type == TokenType.L_PAREN


def _start(outside: list[Token]) -> Token | None:
    """The word SPLIT where a SELECT could stand: first of all, or after the tables of a WITH."""
    before: TokenType | None = None
    for each in outside:
        if each.token_type in {TokenType.SELECT, TokenType.FROM}:
            return None
        word = each.token_type == TokenType.VAR and str(each.text).upper() == "SPLIT"
        if word and before in {None, TokenType.R_PAREN}:
            return each
        before = each.token_type
    return None


def _conditions(case: exp.Case) -> Iterator[Tree]:
    for each in case.args["ifs"]:
        condition = each.this.copy()
        yield exp.EQ(this=case.this.copy(), expression=condition) if case.this else condition


def _names(case: exp.Case, text: str) -> Iterator[str]:
    default = case.args.get("default")
    seen: set[str] = set()
    for each in [*(each.args["true"] for each in case.args["ifs"]), *([default] if default else [])]:
        if not isinstance(each, exp.Column) or each.table:
            raise BadExpression(f"{render(each)} is no name for an output; write {_FORM}{mark(each, text)}")
        if each.name.lower() in seen:
            raise BadName(
                f"two outputs have the name {each.name!r}; join their conditions with OR{mark(each, text)}"
            )
        seen.add(each.name.lower())
        yield str(each.name)
