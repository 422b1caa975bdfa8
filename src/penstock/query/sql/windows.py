"""Windows of the query language: table functions in FROM, calls in GROUP BY, and what SELECT says of them.

Flink's table functions are cut out of the text, so that the rest is plain SQL; only the name of the table
stays where it was, and it tells which function was around it. Calls in GROUP BY, Flink's and Spark's, stay in
the tree.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import BadDuration, BadExpression, BadWindow
from penstock.expressions.durations import microseconds, signed_microseconds
from penstock.expressions.parsing import (
    Tree,
    call_name,
    marked,
    parse_scalar,
    place_of,
    render,
    tokens_of,
)
from penstock.expressions.scalar import scalar
from penstock.operators import WINDOW_END, WINDOW_START
from penstock.query.relation import Derived, Relation

__all__ = [
    "TIME_OF_WINDOW",
    "WINDOW_BOUNDS",
    "Inner",
    "TableFunction",
    "WindowClause",
    "conjuncts",
    "cut_functions",
    "is_bound",
    "is_certain_bound",
    "named_bounds",
    "refuse_unbound",
    "restored",
    "window_call",
    "window_name",
]

WINDOW_BOUNDS: Final = (WINDOW_START, WINDOW_END)
TIME_OF_WINDOW: Final = "window_time"
_FORMS: Final = {
    "tumble": "TABLE(TUMBLE(TABLE reports, DESCRIPTOR(time), INTERVAL '5' MINUTES))",
    "hop": "TABLE(HOP(TABLE reports, DESCRIPTOR(time), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES)), "
    "slide first",
    "cumulate": "TABLE(CUMULATE(TABLE reports, DESCRIPTOR(time), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)), "
    "step first",
    "session": "TABLE(SESSION(TABLE reports PARTITION BY vehicle, DESCRIPTOR(time), INTERVAL '5' MINUTES))",
}
_CALLS: Final = {
    "window": "window(time, '5 minutes') or window(time, '5 minutes', '1 minute')",
    "session_window": "session_window(time, '5 minutes')",
    "tumble": "TUMBLE(time, INTERVAL '5' MINUTES)",
    "hop": "HOP(time, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES), slide first",
    "session": "SESSION(time, INTERVAL '5' MINUTES)",
}
# sqlglot takes these words for clauses where they may be functions; names of the same length keep positions.
_STAND_INS: Final = {"window": "_windo", "session": "_sessio"}
_ONLY_WINDOWS: Final = frozenset({"window", "session_window", "session"})
_NAMES: Final = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "cumulate": ("step", "size", "offset"),
    "session": ("gap",),
}
_CERTAIN: Final = "bound of windows"
_OF_WINDOW: Final = re.compile(r"(tumble|hop|session|cumulate)_(start|end|rowtime)")
_BEFORE_END: Final = {"rowtime": "0.001", "window_time": "0.000001"}
_PRECISION: Final = re.compile(r"\(\s*\d+\s*(,\s*\d+\s*)?\)\s*$")


@dataclass(frozen=True)
class WindowClause:
    """The windows of a SELECT: sliding, cumulating, sessions, or those that the rows have already."""

    kind: Literal["window", "cumulate", "session", "same"]
    size: str = ""
    slide: str | None = None
    offset: str | None = None

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Size, slide and offset in microseconds."""
        size = microseconds(self.size)
        slide = size if self.slide is None else microseconds(self.slide)
        return size, slide, 0 if self.offset is None else signed_microseconds(self.offset)

    def over(self, relation: Relation, keys: Mapping[str, str]) -> Any:
        """The relation with these windows and keys, waiting for its aggregates."""
        made: Any = relation
        if self.kind == "window":
            made = made.window(self.size, self.slide, self.offset)
        elif self.kind == "cumulate":
            made = made.cumulate(self.size, self.slide, self.offset)
        elif self.kind == "session":
            made = made.session(self.size)
        else:
            made = made.by_window()
        return made.group_by(**keys) if keys else made


@dataclass(frozen=True)
class TableFunction:
    """A function around a table of FROM: its windows, the time that it names, and the keys of sessions."""

    name: str
    clause: WindowClause
    time: str | None
    partition: tuple[str, ...]

    def check(self, relation: Relation, written: str) -> None:
        """Raise BadWindow unless the windows go by the event time of rows that have no windows yet."""
        if {*WINDOW_BOUNDS} & {each.lower() for each in relation.schema.names}:
            raise BadWindow(
                f"{self.name.upper()} of {written}, which has window_start and window_end already; aggregate "
                f"it by GROUP BY window({relation.time}, …), or by the windows that it has: GROUP BY "
                "window_start, window_end"
            )
        if self.time is not None and self.time.lower() != relation.time.lower():
            raise BadWindow(
                f"{self.name.upper()} goes by DESCRIPTOR({self.time}), but the event time of {written} is "
                f"{relation.time!r}; write DESCRIPTOR({relation.time})"
            )


def cut_functions(text: str) -> tuple[str, dict[int, TableFunction]]:
    """The statement with tables in place of table functions, and the functions by the position of the table.

    >>> rest, found = cut_functions("SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(at), '5 minutes')")
    >>> " ".join(rest.split()), [each.clause.size for each in found.values()]
    ('SELECT * FROM t', ["'5 minutes'"])
    """
    found: dict[int, TableFunction] = {}
    rest = list(text)
    tokens = tokens_of(text)
    words = [text[each.start : each.end + 1].upper() for each in tokens]
    for number, token in enumerate(tokens):
        opens = number + 1 < len(tokens) and tokens[number + 1].token_type == TokenType.L_PAREN
        before = words[number - 1] if number else ""
        if opens and words[number].lower() in _STAND_INS and before in {"GROUP BY", ","}:
            rest[token.start : token.end + 1] = _STAND_INS[words[number].lower()]
        if not opens or words[number].lower() not in _FORMS:
            continue
        wrapped = before == "(" and number > 1 and words[number - 2] == "TABLE"
        if not wrapped and before not in {"FROM", "JOIN"}:
            continue
        close = _closing(tokens, number + 1, text)
        name, function = _function(text, tokens[number : close + 1])
        found[name.start] = function
        first, last = (number - 2, close + 1) if wrapped else (number, close)
        start, end = tokens[first].start, tokens[min(last, len(tokens) - 1)].end + 1
        rest[start:end] = " " * (end - start)
        rest[name.start : name.end + 1] = text[name.start : name.end + 1]
    return "".join(rest), found


def restored(tree: Tree, written: str) -> Tree:
    """The tree with the names that words of the grammar stood in for; only GROUP BY may have windows.

    >>> from penstock.expressions.parsing import parse_statement
    >>> statement = parse_statement("SELECT 1 FROM t GROUP BY _windo(at, '5 minutes')", "")
    >>> render(restored(statement, ""))
    "SELECT 1 FROM t GROUP BY WINDOW(at, '5 minutes')"
    """
    words = {stand_in: word for word, stand_in in _STAND_INS.items()}
    for node in tree.find_all(exp.Anonymous):
        name = words.get(str(node.this).lower(), str(node.this).lower())
        if name not in _ONLY_WINDOWS:
            continue
        if not isinstance(node.find_ancestor(exp.Group, exp.Select), exp.Group):
            place = place_of(node)
            shown = "" if place is None else f"\n{marked(written, place)}"
            raise BadWindow(
                f"{name}() stands outside GROUP BY; write GROUP BY {_CALLS[name]}, and select window_start "
                f"and window_end for its bounds{shown}"
            )
        node.set("this", name)
    return tree


def _closing(tokens: Sequence[Token], opening: int, text: str) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += tokens[place].token_type == TokenType.L_PAREN
        depth -= tokens[place].token_type == TokenType.R_PAREN
        if depth == 0:
            return place
    raise BadWindow(f"the table function is not closed by )\n{marked(text, tokens[opening].start)}")


def _function(text: str, tokens: Sequence[Token]) -> tuple[Token, TableFunction]:
    """The token of the table's name, and the function."""
    kind = text[tokens[0].start : tokens[0].end + 1].lower()

    def refused(reason: str) -> BadWindow:
        return BadWindow(f"{reason}; write {_FORMS[kind]}\n{marked(text, tokens[0].start)}")

    def spelled(token: Token) -> str:
        return text[token.start : token.end + 1]

    (first_name, first), *others = (_unnamed(each, spelled) for each in _arguments(tokens[2:-1]))
    if first and spelled(first[0]).upper() == "TABLE":
        first = first[1:]
    if first_name not in {None, "data"} or not first or not _NAME.fullmatch(spelled(first[0])):
        raise refused(f"{kind.upper()}() begins with the name of a table; give a sub-query a name in WITH")
    after = [spelled(each) for each in first[1:]]
    if after and (after[0].upper() != "PARTITION BY" or kind != "session"):
        raise refused(
            f"{after[0]} after the table; the keys of sessions are in PARTITION BY, others in GROUP BY"
        )
    partition = [each.strip("`") for each in after[1:]]
    while partition and others and len(others[0][1]) == 1 and _NAME.fullmatch(spelled(others[0][1][0])):
        partition.append(spelled(others.pop(0)[1][0]).strip("`"))
    time, lengths = _lengths(kind, [(name, [*map(spelled, each)], each) for name, each in others], refused)
    texts = {name: text[each[0].start : each[-1].end + 1] for name, each in lengths.items()}
    clause = _clause(kind, {name: _duration(each, text) for name, each in texts.items()})
    return first[0], TableFunction(kind, clause, time, tuple(partition))


_NAME: Final = re.compile(r"`[^`]+`|[A-Za-z_]\w*")


def _lengths(
    kind: str,
    arguments: Sequence[tuple[str | None, list[str], list[Token]]],
    refused: Callable[[str], BadWindow],
) -> tuple[str | None, dict[str, list[Token]]]:
    """The column of time, if one is named, and the durations by their names."""
    time, names = None, list(_NAMES[kind])
    found: dict[str, list[Token]] = {}
    for name, words, tokens in arguments:
        if words[0].upper() == "DESCRIPTOR" and len(words) == 4:
            time = words[2].strip("`")
        elif len(words) == 1 and _NAME.fullmatch(words[0]) and time is None and not found:
            time = words[0].strip("`")
        elif names and (name is None or name in names):
            found[names.pop(names.index(name) if name else 0)] = tokens
        else:
            raise refused(f"{kind.upper()}() got one argument too many")
    lacking = [each for each in names if each != "offset"]
    if lacking:
        raise refused(f"{kind.upper()}() got no {lacking[0]}")
    return time, found


def _arguments(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    held: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.token_type == TokenType.L_PAREN
        depth -= token.token_type == TokenType.R_PAREN
        if token.token_type == TokenType.COMMA and depth == 0:
            yield held
            held = []
        else:
            held.append(token)
    if held:
        yield held


def _unnamed(argument: list[Token], spelled: Callable[[Token], str]) -> tuple[str | None, list[Token]]:
    """The name of an argument and the argument, as in ``SIZE => INTERVAL '5' MINUTES``."""
    if len(argument) > 2 and argument[1].token_type == TokenType.FARROW:
        return spelled(argument[0]).lower(), argument[2:]
    return None, argument


def _duration(written: str, text: str) -> str:
    """A duration as written, without the precision that Flink allows after its unit."""
    plain = _PRECISION.sub("", written)
    try:
        signed_microseconds(plain)
    except BadDuration as error:
        raise BadDuration(f"{error}\n{marked(text, max(0, text.find(written)))}") from error
    return plain


def _clause(kind: str, lengths: Mapping[str, str]) -> WindowClause:
    if kind == "session":
        return WindowClause("session", lengths["gap"])
    if kind == "cumulate":
        return WindowClause("cumulate", lengths["size"], lengths["step"], lengths.get("offset"))
    return WindowClause("window", lengths["size"], lengths.get("slide"), lengths.get("offset"))


def window_name(node: Tree) -> str | None:
    """The name of a call in GROUP BY that stands for windows, None for anything else."""
    name = call_name(node)
    return name if name in _CALLS else None


def window_call(node: Tree, relation: Relation, written: str, inner: "Inner") -> WindowClause | None:
    """The windows that a call in GROUP BY stands for, None if it is something else."""
    name = window_name(node)
    if name is None:
        return None
    wanted = _CALLS[name]
    if not node.expressions or not isinstance(node.expressions[0], exp.Column):
        raise BadWindow(f"{name}() goes by a column; write {wanted}")
    time, *lengths = node.expressions
    nested = time.name.lower() in inner.times
    if time.name.lower() != relation.time.lower() and not nested:
        raise BadWindow(
            f"{name}() goes by {time.name!r}, but the event time is {relation.time!r}; windows go by event "
            "time"
        )
    most = {"window": 3, "hop": 3, "tumble": 2}.get(name, 1)
    least = 2 if name == "hop" else 1
    if not least <= len(lengths) <= most:
        raise BadWindow(f"{name}() got {len(lengths)} durations; write {wanted}")
    texts = [
        _duration(each.name if isinstance(each, exp.Literal) else render(each), written) for each in lengths
    ]
    found = _called(name, texts)
    if nested and not inner.nests_in(found):
        raise BadWindow(
            f"{name}() goes by {time.name!r}, the last moment of windows, while their event time is "
            f"{relation.time!r}: both are in one window only if tumbling windows fill it; go by "
            f"{relation.time!r}"
        )
    return found


def _called(name: str, texts: Sequence[str]) -> WindowClause:
    if name in {"session", "session_window"}:
        return WindowClause("session", texts[0])
    if name == "hop":
        return WindowClause("window", texts[1], texts[0], *texts[2:])
    if name == "tumble":
        return WindowClause("window", texts[0], None, *texts[1:])
    return WindowClause("window", *texts)


@dataclass(frozen=True)
class Inner:
    """The windows of a sub-query, if they are known, and the columns that hold their last moment."""

    window: WindowClause | None = None
    times: frozenset[str] = frozenset()

    @classmethod
    def of(cls, relation: Relation, window: WindowClause | None) -> "Inner":
        """Of a relation with these windows."""
        if not isinstance(relation, Derived) or window is None:
            return cls()
        origins = relation.operator.origins(0, relation.inputs)
        last = scalar(render(_before_end("rowtime")), relation.schema).sql
        return cls(window, frozenset(name.lower() for name, sql in origins.items() if sql == last))

    def nests_in(self, outer: WindowClause) -> bool:
        """Whether these are tumbling windows of which each lies whole in every one of the others it meets."""
        if self.window is None or self.window.kind != "window" or outer.kind != "window":
            return False
        size, slide, offset = self.window.lengths
        outer_size, outer_slide, outer_offset = outer.lengths
        return size == slide and not any(
            each % size for each in (outer_size, outer_slide, outer_offset - offset)
        )


def named_bounds(tree: Tree, tables: Sequence[str], columns: Container[str] = ()) -> Tree:
    """The tree with the bounds of windows as columns, whichever way they are written.

    ``window.start``, ``session_window.start``, ``TUMBLE_START(…)`` and ``t.window_start`` are the column
    window_start. ``columns`` of the tables themselves stay what they are; a table goes before a column of its
    name.
    """
    known = {each.lower() for each in tables}
    bounds = {*WINDOW_BOUNDS, TIME_OF_WINDOW}

    def named(node: Tree) -> Tree:
        if isinstance(node, exp.Column):
            first, *rest = [each.name.lower() for each in node.parts]
            of_table = first in known and len(rest) == 1 and rest[0] in bounds
            return _bound_column(node, known) if of_table or first not in columns else node
        name = call_name(node) or ""
        if name == "window_time" and len(node.expressions) == 1:
            return _before_end("window_time")
        match = _OF_WINDOW.fullmatch(name)
        if match is None:
            return node
        return _before_end("rowtime") if match[2] == "rowtime" else _certain(exp.column(f"window_{match[2]}"))

    return tree.transform(named)


def _bound_column(node: exp.Column, tables: set[str]) -> Tree:
    table, name = node.table.lower(), node.name.lower()
    if table in {"window", "session_window"} and name in {"start", "end"}:
        return _certain(exp.column(f"window_{name}"))
    if table and table not in tables:
        return node
    if name == "window" and not table:
        return _certain(parse_scalar(f"named_struct('start', {WINDOW_START}, 'end', {WINDOW_END})"))
    if name == TIME_OF_WINDOW:
        return _before_end("rowtime")
    return exp.column(name) if name in WINDOW_BOUNDS else node


def _certain(tree: Tree) -> Tree:
    """Bounds that are written in a way in which no column of a table can be."""
    for each in tree.find_all(exp.Column):
        each.meta[_CERTAIN] = True
    return tree


def is_certain_bound(node: Tree) -> bool:
    """Whether a column is a bound of windows even if its table has a column of that name."""
    return bool(node.meta.get(_CERTAIN))


def _before_end(kind: str) -> Tree:
    return _certain(parse_scalar(f"{WINDOW_END} - INTERVAL '{_BEFORE_END[kind]}' SECOND"))


def is_bound(node: Tree) -> bool:
    """Whether a key of GROUP BY is the window itself: one of its bounds, or its time."""
    if isinstance(node, exp.Column) and not node.table:
        return node.name.lower() in WINDOW_BOUNDS
    columns = {each.name.lower() for each in node.find_all(exp.Column)}
    return bool(columns) and columns <= set(WINDOW_BOUNDS) and isinstance(node, exp.Sub)


def conjuncts(tree: Tree) -> Iterator[Tree]:
    """The conditions that a condition joins by AND."""
    plain = tree.unnest()
    if isinstance(plain, exp.And):
        yield from conjuncts(plain.this)
        yield from conjuncts(plain.expression)
    else:
        yield tree


def refuse_unbound(function: TableFunction) -> BadExpression:
    """What to say of a table function whose windows nothing uses."""
    return BadExpression(
        f"{function.name.upper()}() is there, but GROUP BY has no window; write GROUP BY window_start, "
        "window_end, and the keys after them, with ROLLUP, CUBE or GROUPING SETS of keys at the end"
    )
