"""Parses SQL text with sqlglot; function calls stay as written, and errors mark the position."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import BadExpression

__all__ = [
    "PenstockSql",
    "Tree",
    "call_name",
    "check_quotes",
    "dotted",
    "marked",
    "parse_scalar",
    "parse_statement",
    "place_of",
    "render",
    "shared_scalar",
    "tokens_of",
]

Tree = exp.Expr
_SPECIAL_SYNTAX: Final = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY")

_COMMA, _OPEN, _CLOSE = TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN
_NOTHING_BETWEEN: Final = (
    *((_COMMA, _COMMA), (_OPEN, _COMMA), (_COMMA, _CLOSE)),
    *((_COMMA, TokenType.FROM), (TokenType.SELECT, TokenType.FROM)),
)
_SHIFTS: Final = ((TokenType.GT, TokenType.GT), (TokenType.LT, TokenType.LT))


class PenstockSql(Spark):
    """Spark SQL in which function calls stay as written.

    sqlglot's own function classes rewrite calls when they render them (date formats, argument orders,
    synonyms). Without them Spark gets the text that the user wrote.
    """

    class Parser(SparkParser):
        """Spark's parser without named function classes."""

        FUNCTIONS = {}  # noqa: RUF012 -- sqlglot's metaclass reads this attribute by its bare name
        FUNCTION_PARSERS = {  # noqa: RUF012 -- read by its bare name, as the one above
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
        }


def parse_scalar(text: str, written: str | None = None) -> Tree:
    """The tree of one expression; errors show the position in the user's text."""
    if written is not None or not isinstance(text, str):
        return _parse(text, exp.Condition, written)
    return shared_scalar(text).copy()


def shared_scalar(text: str) -> Tree:
    """The tree of one expression for those who only read or transform it: nobody may change it."""
    return _scalar(text) if isinstance(text, str) else _parse(text, exp.Condition)


@lru_cache(maxsize=4096)
def _scalar(text: str) -> Tree:
    # Every step from a query to its tasks reads the same expressions, and a copy costs as much as parsing.
    return _parse(text, exp.Condition)


def parse_statement(text: str, written: str) -> Tree:
    """The tree of one statement; errors show the position in the user's text."""
    return _parse(text, None, written)


def render(node: Tree) -> str:
    """The canonical text of a tree: one spacing, upper-case function names, no comments."""
    return node.sql(dialect=PenstockSql, comments=False)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, with their positions."""
    try:
        return list(sqlglot.tokenize(text, read=PenstockSql))
    except TokenError as error:
        raise BadExpression(f"cannot read {text!r}: a quote or a comment is not closed") from error


def call_name(node: Tree) -> str | None:
    """The lower-case name of a function call, None for any other node.

    >>> call_name(parse_scalar("Date_Format(t, 'yyyy')"))
    'date_format'
    """
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Any):
        return "any"
    if isinstance(node, exp.Func) and not isinstance(node, (exp.And, exp.Or, exp.Case, exp.If)):
        return str(node.sql_name()).lower()
    return None


def dotted(*names: str | exp.Identifier) -> Tree:
    """The column with these names: its own, or those of a row or struct and its fields.

    >>> render(dotted("place", "city"))
    '`place`.`city`'
    """
    identifiers = [exp.to_identifier(each, quoted=True) for each in names]
    parts = zip(("this", "table", "db", "catalog"), reversed(identifiers[:4]), strict=False)
    found: Tree = exp.Column(**dict(parts))
    for each in identifiers[4:]:
        found = exp.Dot(this=found, expression=each)
    return found


def place_of(node: Tree) -> int | None:
    """The position in the text of the first name in a tree, None if it has none."""
    places = [each.meta["start"] for each in node.find_all(exp.Identifier) if "start" in each.meta]
    return min(places, default=None)


def marked(text: str, position: int) -> str:
    """The line of the text that holds a position, with a caret under it.

    >>> print(marked("a + * b", 4))
      a + * b
          ^
    """
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].split("\n", 1)[0]
    return f"  {line}\n  {' ' * (position - start)}^"


def _parse(text: str, into: type[Tree] | None, written: str | None = None) -> Tree:
    if not isinstance(text, str):
        raise BadExpression(
            f"expected SQL text, got {text!r} of type {type(text).__name__}; put it in quotes"
        )
    source, tokens = _escape_doubled_quotes(text)
    if not source.strip():
        raise BadExpression("the SQL text is empty; write an expression such as 'speed * 3.6'")
    try:
        parser = PenstockSql().parser(error_message_context=len(source) + 1)
        found = parser.parse_into(into, tokens, source) if into else parser.parse(tokens, source)
    except ParseError as error:
        raise BadExpression(_describe(written or text, error)) from error
    if len(found) != 1 or found[0] is None:
        raise BadExpression(f"expected one expression or statement, got {len(found)} in {text!r}")
    return _with_interval_sums_closed(found[0])


def check_quotes(text: str, columns: Iterable[str]) -> None:
    """Raise BadExpression for the name of a column in double quotes, which Spark reads as a text.

    >>> check_quotes('"kind" = 1', ["kind"])
    Traceback (most recent call last):
        ...
    penstock.errors.BadExpression: "kind" is a text in Spark SQL, and there is a column of this name; write \
`kind` for the column, or 'kind' for the text
      "kind" = 1
      ^
    """
    if '"' not in text:
        return
    known = {each.lower() for each in columns}
    previous = None
    for token in tokens_of(text):
        quoted = token.token_type == TokenType.STRING and text[token.start] == '"'
        # After AS it can only be a name.
        if quoted and previous != TokenType.ALIAS and token.text.lower() in known:
            name = token.text
            raise BadExpression(
                f'"{name}" is a text in Spark SQL, and there is a column of this name; write `{name}` for '
                f"the column, or '{name}' for the text\n{marked(text, token.start)}"
            )
        previous = token.token_type


def _escape_doubled_quotes(text: str) -> tuple[str, list[Token]]:
    # Spark 4 reads '' inside a string as one quote, sqlglot as two adjacent strings.
    # The replacement has the same length, so positions in the text do not change.
    characters, tokens = list(text), tokens_of(text)
    for left, right in pairwise(tokens):
        _check_neighbours(left, right, text)
        if left.token_type == right.token_type == TokenType.STRING:
            characters[left.end] = "\\"
    source = "".join(characters)
    return source, tokens if source == text else tokens_of(source)


def _check_neighbours(left: Token, right: Token, text: str) -> None:
    # sqlglot accepts these and guesses what was meant.
    pair, apart = (left.token_type, right.token_type), left.end + 1 != right.start
    strings = pair == (TokenType.STRING, TokenType.STRING)
    if strings and (apart or text[left.end] != text[right.start]):
        raise BadExpression(f"two adjacent strings; use concat()\n{marked(text, right.start)}")
    if pair in _NOTHING_BETWEEN:
        raise BadExpression(f"something is missing before this\n{marked(text, right.start)}")
    if apart and pair in _SHIFTS:
        raise BadExpression(f"{right.text} was not expected here\n{marked(text, right.start)}")


def _with_interval_sums_closed(tree: Tree) -> Tree:
    # sqlglot reads INTERVAL 1 HOUR 30 MINUTES as a sum without parentheses, so that "t - INTERVAL …"
    # would add the minutes. A sum written by the user has parentheses wherever it needs them.
    for node in list(tree.find_all(exp.Add)):
        parent = node.parent
        binds = isinstance(parent, (exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg))
        if binds or (isinstance(parent, exp.Sub) and node.arg_key == "expression"):
            node.replace(exp.paren(node.copy()))
    return tree


def _describe(text: str, error: ParseError) -> str:
    if not error.errors:
        return f"cannot read {text!r} as SQL"
    first = error.errors[0]
    reason = str(first["description"] or "not understood")
    if missing := re.match(r"Required keyword: '\w+' missing for .*\.(\w+)'>", reason):
        reason = f"something is missing next to this {missing[1].upper()}"
    word = first["highlight"] or "the end of the text"
    reason = reason.replace("Invalid expression / Unexpected token", f"{word} was not expected here")
    place = len(first["start_context"] or "")
    return f"cannot read the SQL: {_lowered(reason.rstrip('.'))}\n{marked(text, place)}"


def _lowered(sentence: str) -> str:
    """A sentence that begins in lower case, unless it begins with a word of the text in upper case."""
    return sentence if sentence[:2].isupper() else sentence[0].lower() + sentence[1:]
