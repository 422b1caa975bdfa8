"""A program as text: SQL for the product and for Spark, and Python; one of many spellings by a seed.

A spelling decides what SQL leaves open: aliases (none, one that is another table's or column's name, one that
hides an outer table that is not needed), qualified or bare names, letter case, quotes, sub-queries in FROM or
in WITH, ordinals and aliases in GROUP BY, and how windows, bounds and intervals are written.
"""

import re
from collections import Counter
from random import Random

from fuzz.operators import PYTHON
from fuzz.program import (
    MARK,
    SECOND,
    Aggregate,
    Block,
    Bound,
    Expr,
    Item,
    Join,
    Program,
    Ranked,
    Relation,
    Sub,
    Table,
    Union,
    Verb,
    Window,
    relations_of,
    tables_of,
)

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
RESERVED = {"order", "user", "when", "at", "time", "kind"}
ALIASES = ("a", "b", "c", "l", "r", "x", "t", "s", "q1", "Zz")
BOUNDS = ("window_start", "window_end")
KEYWORDS = {"order", "user", "when"}


def program_text(program: Program) -> str:
    """The program as Python that can be run; `query` is its relation."""
    lines = [
        f"{variable(each)} = ps.stream({each.name!r}, {schema_text(each)!r}, time={each.time!r}, "
        f"delay='{each.delay} microseconds', ahead=None{f', key={each.key!r}' if each.key else ''})"
        for each in tables_of(program.query).values()
    ]
    return "\n".join([*lines, f"query = {Speller(program).source(program.query)}"])


def spark_text(program: Program) -> str:
    """The SQL of a program that Spark understands."""
    return Speller(program).statement(program.query)[0]


def variable(table: Table) -> str:
    return f"_{table.name}"


def schema_text(table: Table) -> str:
    return ", ".join(f"`{each.name}` {each.type}" for each in table.columns)


def backticks(text: str) -> str:
    """Marks as quoted names of one relation."""
    return MARK.sub(lambda each: f"`{each[2]}`", text)


def escaped(text: str) -> str:
    """Text as it stands between quotes in Python."""
    return text.replace("\\", "\\\\")


class Speller:
    """Writes relations; every choice comes from the seed of the spelling."""

    def __init__(self, program: Program) -> None:
        self.rng = Random(program.style)
        self.verbatim = program.verbatim
        self.tables = tables_of(program.query)
        self.program = program
        self.fresh = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self) -> str:
        self.fresh += 1
        return f"n{self.fresh}"

    # -- Python ------------------------------------------------------------------------------------------

    def source(self, relation: Relation) -> str:
        """A Python expression that makes the relation."""
        match relation:
            case Table():
                return variable(relation)
            case Verb():
                return PYTHON[relation.kind](relation, *(self.source(each) for each in relation.inputs))
            case Block(form="python"):
                return python_block(self, relation)
        if isinstance(relation, Block) and splittable(relation) and not self.verbatim and self.chance(0.3):
            return split_text(self, relation)
        text, definitions = self.statement(relation)
        streams = [variable(each) for each in self._streams(relation)]
        named = [f"{name}={source}" for name, source in definitions.items()]
        return f'ps.sql("""{escaped(text)}""", {", ".join([*streams, *named])})'

    def _streams(self, relation: Relation) -> list[Table]:
        """The tables that a statement reads itself, and sometimes one that it does not."""
        found: dict[str, Table] = {}

        def visit(each: Relation) -> None:
            if isinstance(each, Table):
                found[each.name] = each
            elif not apart(each):
                for inner in inputs(each):
                    visit(inner)

        for each in inputs(relation):
            visit(each)
        return list(found.values())

    # -- SQL ---------------------------------------------------------------------------------------------

    def statement(self, relation: Relation) -> tuple[str, dict[str, str]]:
        """A whole text, and what it names of Python."""
        writer = Statement(self, relation)
        return writer.text(), writer.definitions

    def identifier(self, name: str) -> str:
        if not PLAIN_NAME.fullmatch(name) or name.lower() in KEYWORDS:
            return f"`{name}`"
        if self.chance(0.08):
            return f"`{name}`"
        if self.chance(0.06):
            return name.swapcase()
        return name

    def duration(self, micros: int) -> str:
        """As in WITHIN and in windows: 5 seconds."""
        if micros % (60 * SECOND) == 0 and micros and self.chance(0.7):
            return f"{micros // (60 * SECOND)} minutes"
        if micros % SECOND == 0:
            return f"{micros // SECOND} seconds"
        return f"{micros // 1000} milliseconds"

    def interval(self, micros: int) -> str:
        if micros % (60 * SECOND) == 0 and micros and self.chance(0.7):
            return f"INTERVAL '{micros // (60 * SECOND)}' MINUTE{self.rng.choice(['', 'S'])}"
        if micros % SECOND == 0:
            if self.chance(0.5):
                return f"INTERVAL {micros // SECOND} SECONDS"
            return f"INTERVAL '{micros // SECOND}' SECOND"
        return f"INTERVAL '{micros / SECOND:.3f}' SECOND"


def apart(relation: Relation) -> bool:
    """Whether a relation is made in Python and named in SQL."""
    return isinstance(relation, Verb) or (isinstance(relation, Block) and relation.form == "python")


def inputs(relation: Relation) -> tuple[Relation, ...]:
    from fuzz.program import inputs_of

    return inputs_of(relation)


class Statement:
    """One text of SQL."""

    def __init__(self, speller: Speller, relation: Relation) -> None:
        self.speller, self.rng, self.relation = speller, speller.rng, relation
        self.definitions: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.ctes: list[tuple[str, str]] = []
        self.uses = Counter(id(each) for each in relations_of(relation))

    def text(self) -> str:
        body = self.select(self.relation, [])
        if not self.ctes:
            return body
        return f"WITH {', '.join(f'{name} AS ({text})' for name, text in self.ctes)} {body}"

    def select(self, relation: Relation, scopes: list["Scope"]) -> str:
        match relation:
            case Block():
                return BlockWriter(self, relation, scopes).text()
            case Union():
                parts = [self.select(each, []) for each in relation.parts]
                return " UNION ALL ".join(
                    f"({each})" if place and self.speller.chance(0.2) else each
                    for place, each in enumerate(parts)
                )
            case Ranked():
                return self.ranked(relation)
        return f"SELECT * FROM {self.relation_name(relation)}"

    def relation_name(self, relation: Relation) -> str | None:
        """The name of a table, or of what Python made."""
        if isinstance(relation, Table):
            return relation.name
        if apart(relation):
            if id(relation) not in self.names:
                self.names[id(relation)] = self.speller.name()
                self.definitions[self.names[id(relation)]] = self.speller.source(relation)
            return self.names[id(relation)]
        return None

    def table_text(self, relation: Relation, *, named: bool = False) -> tuple[str, str | None]:
        """What stands in FROM, and the name under which it is known without an alias."""
        name = self.relation_name(relation)
        if name is not None:
            return self.speller.identifier(name), name
        if id(relation) in self.names:
            return self.names[id(relation)], self.names[id(relation)]
        inner = self.select(relation, [])
        if named or self.speller.chance(0.3):
            cte = self.cte_name(relation)
            self.names[id(relation)] = cte
            self.ctes.append((cte, inner))
            return cte, cte
        return f"({inner})", None

    def cte_name(self, relation: Relation) -> str:
        """A new name, or that of a table that nothing but this relation reads."""
        inside = Counter(each.name for each in relations_of(relation) if isinstance(each, Table))
        whole = Counter(each.name for each in relations_of(self.relation) if isinstance(each, Table))
        hidden = [name for name in inside if inside[name] == whole[name]]
        taken = {name.lower() for name, _ in self.ctes}
        if hidden and self.speller.chance(0.15):
            name = self.rng.choice(hidden)
            if name.lower() not in taken:
                return name
        return self.speller.name()

    def function(self, item: Item) -> str:
        """An item with windows as a table function."""
        text, name = self.table_text(item.relation, named=True)
        del name
        window, interval = item.window, self.speller.interval
        offset = [interval(window.offset)] if window.offset else []
        times = {
            "tumble": lambda: [interval(window.size), *offset],
            "hop": lambda: [interval(window.slide), interval(window.size), *offset],
            "cumulate": lambda: [interval(window.slide), interval(window.size), *offset],
            "session": lambda: [interval(window.size)],
        }[window.kind]()
        keys = ""
        if item.partition:
            keys = f" PARTITION BY {', '.join(map(self.speller.identifier, item.partition))}"
        time = item.relation.time
        arguments = [f"TABLE {text}{keys}", f"DESCRIPTOR({self.speller.identifier(time)})", *times]
        call = f"{window.kind.upper()}({', '.join(arguments)})"
        text = f"TABLE({call})" if self.speller.chance(0.7) else call
        # A sub-query that only passes rows on says the same.
        return f"(SELECT * FROM {text})" if self.speller.chance(0.15) else text

    def ranked(self, ranked: Ranked) -> str:
        identifier = self.speller.identifier
        function = "RANK()" if ranked.ties else "ROW_NUMBER()"
        partition = ", ".join(map(identifier, (*BOUNDS, *ranked.partition)))
        order = ", ".join(f"{identifier(name)}{' DESC' if down else ''}" for name, down in ranked.order)
        names = ", ".join(identifier(each.name) for each in ranked.columns)
        if ranked.item.window:
            text = self.function(ranked.item)
        else:
            text, _ = self.table_text(ranked.item.relation)
        r = ranked.rank
        return (
            f"SELECT {names} FROM (SELECT *, {function} OVER (PARTITION BY {partition} ORDER BY {order}) "
            f"AS {r} "
            f"FROM {text}) WHERE {self.ranks(ranked)}"
        )

    def ranks(self, ranked: Ranked) -> str:
        """Which ranks are wanted."""
        r, most = ranked.rank, ranked.most
        if len(ranked.but) == most - 1 and self.speller.chance(0.5):
            return self.rng.choice([f"{r} = {most}", f"{most} = {r}"]) if most > 1 else f"{r} = 1"
        upto = self.rng.choice([f"{r} <= {most}", f"{r} < {most + 1}", f"{most} >= {r}", f"{most + 1} > {r}"])
        parts = [upto, *(f"{r} <> {each}" for each in ranked.but)]
        self.rng.shuffle(parts)
        return " AND ".join(parts)


class Scope:
    """The names of one FROM: what is known of each item."""

    def __init__(self, items: list[tuple[Item, str]]) -> None:
        self.items = items
        self.hidden: set[str] = set()

    def names(self, upto: int | None = None) -> list[tuple[Item, str]]:
        return [each for each in self.items[:upto] if each[0].id not in self.hidden]


class BlockWriter:
    """One SELECT; `scopes` are those around it, the innermost last."""

    def __init__(self, statement: Statement, block: Block, scopes: list[Scope]) -> None:
        self.statement, self.speller, self.rng = statement, statement.speller, statement.rng
        self.block, self.outer = block, scopes
        self.identifier = self.speller.identifier
        self.scope = Scope([])
        self.merged: dict[str, frozenset[str]] = {}

    # -- names ---------------------------------------------------------------------------------------------

    def expression(self, each: Expr, scopes: list[Scope] | None = None, upto: int | None = None) -> str:
        scopes = [*self.outer, self.scope] if scopes is None else scopes
        return MARK.sub(lambda found: self.column(found[1], found[2], scopes, upto), each.spark)

    def column(self, item: str, name: str, scopes: list[Scope], upto: int | None = None) -> str:
        depth, known = next(
            (depth, known)
            for depth, scope in reversed(list(enumerate(scopes)))
            for each, known in scope.items
            if each.id == item
        )
        inner = scopes[depth + 1 :]
        if any(alias.lower() == known.lower() for scope in inner for _, alias in scope.items):
            raise Unspeakable(f"{known} is hidden")
        if any(
            known.lower() == one.name.lower()
            for scope in inner
            for each, _ in scope.items
            for one in each.columns
        ):
            raise Unspeakable(f"{known} would be a column of the sub-query")
        here = scopes[depth].names(upto if depth == len(scopes) - 1 else None)
        same = [each for each, _ in here if name.lower() in {one.name.lower() for one in each.columns}]
        covered = any(
            name.lower() in {one.name.lower() for one in each.columns}
            for scope in inner
            for each, _ in scope.items
        )
        # USING makes one column of two.
        alone = len(same) == 1 or {each.id for each in same} == self.merged.get(f"{item}.{name}")
        # `t.x` and `x.y` may be read as a field of a column t or x; a table goes first.
        if alone and not covered and self.speller.chance(0.55):
            return self.identifier(name)
        return f"{self.identifier(known)}.{self.identifier(name)}"

    def alias(self, item: Item, name: str | None, taken: set[str], avoid: set[str]) -> str | None:
        """An alias for an item, None for none; no name twice in one FROM, none that hides what is needed."""
        bare = name is not None and name.lower() not in taken | avoid
        if bare and self.speller.chance(0.45):
            return None
        others = [*self.speller.tables, *(each.name for each in item.columns), *ALIASES, *ALIASES]
        fit = [
            each
            for each in others
            if each.lower() not in taken | avoid
            and PLAIN_NAME.fullmatch(each)
            and each.lower() not in KEYWORDS
        ]
        return self.rng.choice(fit)

    # -- FROM ----------------------------------------------------------------------------------------------

    def item_text(self, item: Item, taken: set[str], avoid: set[str] = frozenset()) -> tuple[str, str]:
        """An item as it stands in FROM, and the name by which it is known."""
        if item.window:
            text, name = self.statement.function(item), None
        else:
            text, name = self.statement.table_text(item.relation)
        alias = self.alias(item, name, taken, avoid)
        if alias is None:
            return text, name
        return f"{text} {self.rng.choice(['AS ', ''])}{self.identifier(alias)}", alias

    def from_text(self) -> str:
        block = self.block
        text, known = self.item_text(block.first, set())
        self.scope.items.append((block.first, known))
        found = [text]
        for place, join in enumerate(block.joins):
            taken = {alias.lower() for _, alias in self.scope.items}
            text, known = self.item_text(join.item, taken)
            self.scope.items.append((join.item, known))
            found.append(self.join_text(join, text, place + 2))
            if join.how in {"semi", "anti"}:
                self.scope.hidden.add(join.item.id)
        return " ".join(found)

    def join_text(self, join: Join, text: str, upto: int) -> str:
        words = {
            "inner": ["JOIN", "INNER JOIN"],
            "left": ["LEFT JOIN", "LEFT OUTER JOIN"],
            "right": ["RIGHT JOIN", "RIGHT OUTER JOIN"],
            "full": ["FULL JOIN", "FULL OUTER JOIN"],
            "semi": ["LEFT SEMI JOIN"],
            "anti": ["LEFT ANTI JOIN"],
        }[join.how]
        bound = self.bound_text(join.bound)
        if join.using:
            names = ", ".join(self.identifier(MARK.fullmatch(one.spark)[2]) for one, _ in join.keys)
            for one, other in join.keys:
                # Bare, the column is that of the side that has all rows.
                whole = {"inner": (one, other), "right": (other,), "full": ()}.get(join.how, (one,))
                ids = frozenset(each for pair in (one, other) for each in pair.items)
                for each in whole if one.type == other.type else ():
                    self.merged["{}.{}".format(*MARK.fullmatch(each.spark).groups())] = ids
            return f"{self.rng.choice(words)} {text} USING ({names}){bound}"
        parts = [self.equality(one, other, upto) for one, other in join.keys]
        parts += [f"({self.expression(each, upto=upto)})" for each in join.conditions]
        parts += self.bound_conditions(join.bound, join.item, upto)
        self.rng.shuffle(parts)
        on = f" ON {' AND '.join(parts)}" if parts else ""
        word = self.rng.choice(words)
        if not parts and join.how == "inner":
            word = "CROSS JOIN"
        return f"{word} {text}{on}{bound}"

    def equality(self, one: Expr, other: Expr, upto: int | None) -> str:
        pair = [self.expression(each, upto=upto) for each in (one, other)]
        self.rng.shuffle(pair)
        return f"{pair[0]} = {pair[1]}"

    def bound_text(self, bound: Bound) -> str:
        if bound.kind == "within":
            return f" WITHIN {self.speller.duration(bound.ahead).upper()}"
        if bound.kind == "keep":
            return f" KEEP {self.speller.duration(bound.ahead).upper()}"
        if bound.kind == "last":
            return f" LAST {bound.ahead} ROWS"
        return ""

    def bound_conditions(self, bound: Bound, item: Item, upto: int | None, scopes=None) -> list[str]:
        if bound.kind == "window":
            ends = [
                tuple(Expr(f"«{each}.{name}»", "", "timestamp") for each in (bound.by, item.id))
                for name in BOUNDS
            ]
            scopes = scopes or [*self.outer, self.scope]
            return [" = ".join(self.expression(each, scopes, upto) for each in pair) for pair in ends]
        if bound.kind != "interval":
            return []
        scopes = scopes or [*self.outer, self.scope]
        time = next(each.time for scope in scopes for each, _ in scope.items if each.id == bound.by)

        def left() -> str:
            return self.column(bound.by, time, scopes, upto)

        def right() -> str:
            return self.column(item.id, item.time, scopes, upto)

        def moved(time: str, micros: int, sign: str) -> str:
            return f"{time} {sign} {self.speller.interval(micros)}" if micros else time

        back, ahead = bound.back, bound.ahead
        return self.rng.choice(
            [
                lambda: [f"{right()} BETWEEN {moved(left(), back, '-')} AND {moved(left(), ahead, '+')}"],
                lambda: [
                    f"{right()} >= {moved(left(), back, '-')}",
                    f"{right()} <= {moved(left(), ahead, '+')}",
                ],
                lambda: [f"{left()} BETWEEN {moved(right(), ahead, '-')} AND {moved(right(), back, '+')}"],
                lambda: [
                    f"{moved(left(), ahead, '+')} >= {right()}",
                    f"{left()} <= {moved(right(), back, '+')}",
                ],
            ]
        )()

    # -- WHERE ---------------------------------------------------------------------------------------------

    def where_text(self) -> str:
        parts = [f"({self.expression(each)})" for each in self.block.where]
        parts += [self.sub_text(each) for each in self.block.subs]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def sub_text(self, sub: Sub) -> str:
        inner = Scope([])
        needed = {
            known.lower()
            for scope in [*self.outer, self.scope]
            for each, known in scope.items
            if each.id in outer_items(sub)
        }
        text, known = self.item_text(sub.item, set(), needed)
        inner.items.append((sub.item, known))
        scopes = [*self.outer, self.scope, inner]
        keys = list(sub.keys)
        head = "1"
        if sub.kind.endswith("in"):
            (one, other), *keys = keys
            head = self.expression(other, scopes)
            tested = self.expression(one)
        parts = []
        for one, other in keys:
            pair = [self.expression(one, scopes), self.expression(other, scopes)]
            self.rng.shuffle(pair)
            parts.append(" = ".join(pair))
        parts += [f"({self.expression(each, scopes)})" for each in (*sub.conditions, *sub.inner)]
        parts += self.bound_conditions(sub.bound, sub.item, None, scopes)
        self.rng.shuffle(parts)
        condition = f" WHERE {' AND '.join(parts)}" if parts else ""
        bound = self.bound_text(sub.bound)
        if sub.kind.endswith("in"):
            return f"{tested} {sub.kind.upper()} (SELECT {head} FROM {text}{condition}){bound}"
        head = self.rng.choice(["1", "*", "1"])
        return f"{sub.kind.upper()} (SELECT {head} FROM {text}{condition}){bound}"

    # -- the whole -----------------------------------------------------------------------------------------

    def text(self) -> str:
        flow = self.from_text()
        where = self.where_text()
        group = self.block.group
        if group is None:
            items = [self.selected(name, self.expression(each), each) for name, each in self.block.select]
            every = [
                (each.name, f"«{item.id}.{each.name}»")
                for item, _ in self.scope.names()
                for each in item.columns
            ]
            marks = [(name, each.spark) for name, each in self.block.select]
            using = any(each.using for each in self.block.joins)
            # The rows of a table function show window_time as well.
            plain = all(shown(each.relation) and each.window is None for each in self.block.items)
            if plain and not using and marks == every and self.speller.chance(0.7):
                parts = [f"{self.identifier(known)}.*" for _, known in self.scope.names()]
                items = ["*"] if self.speller.chance(0.7) else parts
            return self.ordered(", ".join(items), flow, where)
        return self.grouped(flow, where)

    def ordered(self, items: str, flow: str, rest: str) -> str:
        """SELECT first or, as Spark takes it as well, FROM first."""
        united = any(isinstance(each, Union) for each in relations_of(self.statement.relation))
        if not united and self.speller.chance(0.06):
            return f"FROM {flow} SELECT {items}{rest}"
        return f"SELECT {items} FROM {flow}{rest}"

    def selected(self, name: str, text: str, each: Expr) -> str:
        """An item of the select list; AS may be left out where the name is that of the column."""
        mark = MARK.fullmatch(each.spark)
        if mark and mark[2] == name and mark[1] != "g" and self.speller.chance(0.7):
            return text
        return f"{text} AS {quote(name)}"

    def grouped(self, flow: str, where: str) -> str:
        block, group = self.block, self.block.group
        window = group.window
        function = next((each for each in block.items if each.window), None)
        clause, bounds, calls = "", {}, []
        if window is not None and function is not None:
            for each in BOUNDS:
                bounds[each] = self.column(function.id, each, [*self.outer, self.scope])
            calls = [self.column(function.id, each, [*self.outer, self.scope]) for each in BOUNDS]
        elif window is not None and self.by_call(window):
            bounds, calls = self.called(*self.window_call(window, group.by))
        elif window is not None:
            clause, bounds = f" [{self.range_text(window)}]", {each: each for each in BOUNDS}
        named = dict(bounds)
        keys = []
        columns = {each.name.lower() for item, _ in self.scope.items for each in item.columns}
        for name, each in group.keys:
            named[name] = self.expression(each)
            keys.append(self.key_text(name, each, columns))
        for name, _ in group.keys:
            named[f"grouping({name})"] = f"grouping({named[name]})"
        named["grouping_id"] = "grouping_id()"
        for name, each in group.aggregates:
            named[name] = self.aggregate(each)

        def over(text: str) -> str:
            return MARK.sub(lambda found: named[found[2]], text)

        items = [f"{over(each.spark)} AS {quote(name)}" for name, each in block.select]
        marks = {each.spark for _, each in block.select}
        plain = not group.aggregates and not group.having and group.sets is None and (clause or function)
        if plain and marks == {f"«g.{name}»" for name, _ in group.keys} and self.speller.chance(0.5):
            return f"SELECT DISTINCT {', '.join(items)} FROM {flow}{clause}{where}"
        by = self.group_text(keys, calls)
        having = " AND ".join(f"({self.having(each, named, columns)})" for each in group.having)
        having = f" HAVING {having}" if having else ""
        return self.ordered(", ".join(items), f"{flow}{clause}", f"{where}{by}{having}")

    def having(self, each: Expr, named: dict[str, str], columns: set[str]) -> str:
        """Aggregates as they are, or by their alias if no column has its name."""
        aliases = {
            MARK.fullmatch(one.spark)[2]: name
            for name, one in self.block.select
            if MARK.fullmatch(one.spark) and name.lower() not in columns and name.lower() not in BOUNDS
        }

        def text(found: re.Match) -> str:
            name = found[2]
            if name in aliases and self.speller.chance(0.5):
                return quote(aliases[name])
            return named[name]

        return MARK.sub(text, each.spark)

    def key_text(self, name: str, each: Expr, columns: set[str]) -> str:
        """A key as it is, by ordinal, or by its alias if no column has its name."""
        place = next(
            (place for place, (_, one) in enumerate(self.block.select) if one.spark == f"«g.{name}»"), None
        )
        if place is not None and self.block.group.sets is None:
            alias = self.block.select[place][0]
            if self.speller.chance(0.15):
                return str(place + 1)
            if alias.lower() not in columns and self.speller.chance(0.3):
                return quote(alias)
        return self.expression(each)

    def by_call(self, window: Window) -> bool:
        if window.kind == "session" or self.block.group.by is not None or self.speller.verbatim:
            return True
        return self.speller.chance(0.4)

    def called(self, call: str, name: str) -> tuple[dict[str, str], list[str]]:
        """How bounds are named after a call, and what of the window stands in GROUP BY."""
        plain = all(isinstance(each.relation, Table) for each in self.block.items)
        if plain and not self.speller.verbatim and self.speller.chance(0.3):
            # Only the product knows bounds of a call by these names, of tables that have no such columns.
            return {each: each for each in BOUNDS}, [call, *self.rng.choice([BOUNDS, BOUNDS[:1]])]
        return {"window_start": f"{name}.start", "window_end": f"{name}.end"}, [call]

    def window_call(self, window: Window, by: str | None) -> tuple[str, str]:
        paired = any(each.how not in {"semi", "anti"} for each in self.block.joins)
        if by is None and paired and self.block.first.window is None:
            if self.speller.verbatim or not all(
                isinstance(each.relation, Table) for each in self.block.items
            ):
                raise Unspeakable("Spark has no pair_time, and a sub-query may have a column of that name")
            time = self.speller.rng.choice(["pair_time", "`pair_time`", "PAIR_TIME"])
        else:
            by = by or self.block.first.id
            item = next(each for each in self.block.items if each.id == by)
            if item.time is None:
                raise Unspeakable("the event time is no column")
            time = self.column(by, item.time, [*self.outer, self.scope])
        if window.kind == "session":
            return f"session_window({time}, '{self.speller.duration(window.size)}')", "session_window"
        if window.kind == "cumulate":
            raise Unspeakable("CUMULATE in GROUP BY")
        times = [window.size]
        if window.slide or window.offset:
            times.append(window.slide or window.size)
        if window.offset:
            times.append(window.offset)
        texts = ", ".join(f"'{self.speller.duration(each)}'" for each in times)
        return f"window({time}, {texts})", "window"

    def range_text(self, window: Window) -> str:
        if window.kind not in {"tumble", "hop"}:
            raise Unspeakable(f"{window.kind} as RANGE")
        duration = self.speller.duration
        text = f"RANGE {duration(window.size).upper()}"
        if window.slide:
            text += f" SLIDE {duration(window.slide).upper()}"
        return text + (f" OFFSET {duration(window.offset).upper()}" if window.offset else "")

    def group_text(self, keys: list[str], calls: list[str]) -> str:
        sets = self.block.group.sets
        if self.block.group.rolled:
            return f" GROUP BY {', '.join([*keys, *calls])} WITH ROLLUP"
        if sets is None:
            parts = keys + calls
            if self.speller.chance(0.3):
                self.rng.shuffle(parts)
            return f" GROUP BY {', '.join(parts)}" if parts else ""
        places = range(len(keys))
        rollup = tuple(tuple(places[:end]) for end in range(len(keys), -1, -1))
        every = {tuple(p for p in places if mask >> p & 1) for mask in range(1 << len(keys))}
        if sets == rollup and self.speller.chance(0.7):
            grouped = f"ROLLUP({', '.join(keys)})"
        elif set(sets) == every and len(sets) == len(every) and self.speller.chance(0.7):
            grouped = f"CUBE({', '.join(keys)})"
        else:
            # grouping_id() would count the window among the keys.
            numbered = any(each.spark == "«g.grouping_id»" for _, each in self.block.select)
            inside = [] if numbered or self.speller.chance(0.5) else calls
            texts = [f"({', '.join([*(keys[each] for each in chosen), *inside])})" for chosen in sets]
            grouped = f"GROUPING SETS ({', '.join(texts)})"
            calls = [] if inside else calls
        return f" GROUP BY {', '.join([*calls, grouped])}"

    def aggregate(self, each: Aggregate) -> str:
        text = each.spark.format(*(self.expression(one) for one in each.arguments))
        if each.distinct and "DISTINCT" not in text:
            text = text.replace("(", "(DISTINCT ", 1)
        if each.where is not None:
            text += f" FILTER (WHERE {self.expression(each.where)})"
        return text


def shown(relation: Relation) -> bool:
    """Whether it has no column but those that it selects: bounds of windows and times of pairs stay."""
    match relation:
        case Block(group=None):
            return (
                not relation.joins
                and isinstance(relation.first.relation, Table)
                and not relation.first.window
            )
        case Block():
            return relation.group.window is None or {*BOUNDS} <= {each.name for each in relation.columns}
        case Union():
            return all(map(shown, relation.parts))
    return isinstance(relation, Table)


def outer_items(sub: Sub) -> set[str]:
    """The items around a sub-query that it reads."""
    texts = [each.spark for pair in sub.keys for each in pair]
    texts += [each.spark for each in (*sub.conditions, *sub.inner)]
    found = {mark[1] for text in texts for mark in MARK.finditer(text)}
    return (found | ({sub.bound.by} if sub.bound.by else set())) - {sub.item.id}


def quote(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS else f"`{name}`"


def splittable(block: Block) -> bool:
    """Whether it is one condition over a table."""
    plain = not block.joins and not block.subs and block.group is None and len(block.where) == 1
    return plain and isinstance(block.first.relation, Table) and block.first.window is None


def split_text(speller: Speller, block: Block) -> str:
    """The rows of one condition as an output of SPLIT."""
    table = block.first.relation
    condition = backticks(block.where[0].spark)
    cases = speller.rng.choice(
        [
            f"WHEN {condition} THEN mine ELSE rest END",
            f"WHEN 1 = 0 THEN none WHEN {condition} THEN mine END",
            f"WHEN {condition} THEN mine WHEN 1 = 1 THEN others END",
        ]
    )
    columns = {name: backticks(each.spark) for name, each in block.select}
    text = escaped(f"SPLIT {table.name} CASE {cases}")
    return f'ps.sql("""{text}""", {variable(table)})["mine"]{chosen(columns)}'


class Unspeakable(Exception):  # noqa: N818 -- it is an answer, not a fault
    """This spelling cannot say it."""


# -- blocks as verbs ---------------------------------------------------------------------------------------

NAMES_IN_PYTHON = {
    "count(*)": "count",
    "var_samp": "var",
    "stddev_samp": "stddev",
}


def python_block(  # noqa: C901, PLR0912 -- a line for each clause
    speller: Speller, block: Block
) -> str:
    """A block by methods. Before a join every column gets a name of its own, so that no suffix is needed."""
    if block.group is not None and block.group.sets is not None:
        raise Unspeakable("sets of keys in Python")
    if any(each.window for each in block.items) or any(each.kind == "not in" for each in block.subs):
        raise Unspeakable("in Python")
    names: dict[tuple[str, str], str] = {}

    def over(text: str) -> str:
        return MARK.sub(lambda each: f"`{names[each[1], each[2]]}`", text)

    first = block.first.relation
    text = speller.source(first)
    if isinstance(first, Table) and len(first.columns) > 1 and speller.chance(0.12):
        # All columns pass, the event time unseen.
        types = {each.name: each.type for each in first.columns if each.name != first.time}
        text += mapped(speller, {name: name for name in types}, types)
    if not block.joins and not block.subs:
        names |= {(block.first.id, each.name): each.name for each in block.first.columns}
    else:
        # The event time of rows that are only chosen stays a column of theirs.
        paired = any(each.how not in {"semi", "anti"} for each in block.joins)
        text = renamed(text, block.first, names, kept=None if paired else block.first.time)
    for number, join in enumerate(block.joins):
        text = python_join(speller, text, join, number, names, block)
    for number, sub in enumerate(block.subs, len(block.joins)):
        how = "anti" if sub.kind == "not exists" else "semi"
        join = Join(how, sub.item, sub.keys, sub.bound, (*sub.conditions, *sub.inner))
        text = python_join(speller, text, join, number, names, block)
    for each in block.where:
        text += filtered(speller, over(each.spark))
    group = block.group
    if group is None:
        return text + projected(speller, {name: (over(each.spark), each.type) for name, each in block.select})
    inner = {}
    for place, (_, each) in enumerate(group.keys):
        inner[f"k{place}"] = over(each.spark)
    text += f".group_by(**{inner!r})" if inner else ""
    if group.window is not None:
        text += window_verb(speller, group.window, revising=block is speller.program.query)
    aggregates = []
    results: dict[str, str] = {each: each for each in BOUNDS}
    results |= {name: f"k{place}" for place, (name, _) in enumerate(group.keys)}
    for place, (name, each) in enumerate(group.aggregates):
        function = NAMES_IN_PYTHON.get(each.name, each.name)
        arguments = [repr(over(one.spark)) for one in each.arguments]
        arguments += [f"where={over(each.where.spark)!r}"] if each.where is not None else []
        arguments += ["distinct=True"] if each.distinct else []
        aggregates.append(f"a{place}=ps.{function}({', '.join(arguments)})")
        results[name] = f"a{place}"
    only = [each for _, each in group.aggregates]
    counting = len(only) == 1 and only[0].name == "count(*)" and only[0].where is None
    revising = "early=" in text or "lateness=" in text
    if counting and group.window is not None and not revising and speller.chance(0.5):
        text += ".apply(functions.Counted('a0'), 'a0 bigint')"
    else:
        text += f".agg({', '.join(aggregates)})"

    def result(text: str) -> str:
        return MARK.sub(lambda each: f"`{results[each[2]]}`", text)

    for each in group.having:
        text += f".where({result(each.spark)!r})"
    return text + chosen({name: result(each.spark) for name, each in block.select})


def filtered(speller: Speller, condition: str) -> str:
    """A where(), or the part of a split() that says the same."""
    if speller.chance(0.75):
        return f".where({condition!r})"
    if speller.chance(0.5):
        return f".split({condition!r}, '1 = 1')[0]"
    return f".split('1 = 0', {condition!r})[1]"


def projected(speller: Speller, columns: dict[str, tuple[str, str]]) -> str:
    """A select(), or a map() that gives columns other names."""
    renamed = {name: text[1:-1] for name, (text, _) in columns.items() if re.fullmatch(r"`[^`]+`", text)}
    if (
        len(renamed) < len(columns)
        or any(name == column for name, column in renamed.items())
        or speller.chance(0.6)
    ):
        return chosen({name: text for name, (text, _) in columns.items()})
    return mapped(speller, renamed, {name: kind for name, (_, kind) in columns.items()})


def mapped(speller: Speller, renamed: dict[str, str], types: dict[str, str]) -> str:
    """A map() that gives columns these names."""
    schema = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
    ways = ["", ", channels=True", f", by={next(iter(renamed.values()))!r}"]
    return f".map(functions.Taken({tuple(renamed.items())!r}), {schema!r}{speller.rng.choice(ways)})"


def chosen(columns: dict[str, str]) -> str:
    """A select(); a column under its own name is named alone, as a pinned one has to be."""
    plain = [name for name, text in columns.items() if text == f"`{name}`"]
    made = {name: text for name, text in columns.items() if name not in plain}
    parts = [repr(each) for each in plain] + ([f"**{made!r}"] if made else [])
    return f".select({', '.join(parts)})"


def renamed(text: str, item: Item, names: dict[tuple[str, str], str], kept: str | None = None) -> str:
    made = {}
    for place, each in enumerate(item.columns):
        if each.name == kept:
            names[item.id, kept] = kept
            continue
        names[item.id, each.name] = f"{item.id}_{place}"
        made[f"{item.id}_{place}"] = f"`{each.name}`"
    alone = f"{kept!r}, " if (item.id, kept) in names else ""
    return f"{text}.select({alone}**{made!r})"


def python_join(  # noqa: C901, PLR0912 -- a line for each kind of bound
    speller: Speller, left: str, join: Join, number: int, names: dict[tuple[str, str], str], block: Block
) -> str:
    item, bound = join.item, join.bound
    ours = dict(names)
    theirs: dict[tuple[str, str], str] = {}
    right = renamed(speller.source(item.relation), item, theirs)
    keys = {}

    def plain(text: str) -> str:
        return MARK.sub(lambda each: f"`{(ours | theirs)[each[1], each[2]]}`", text)

    if join.keys:
        made = {f"jl{number}_{at}": plain(one.spark) for at, (one, _) in enumerate(join.keys)}
        left += f".select(*{sorted(set(ours.values()))!r}, **{made!r})"
        other = {f"jr{number}_{at}": plain(one.spark) for at, (_, one) in enumerate(join.keys)}
        right += f".select(*{sorted(theirs.values())!r}, **{other!r})"
        keys = dict(zip(made, other, strict=True))

    def sided(text: str) -> str:
        return MARK.sub(
            lambda each: (
                f"l.`{ours[each[1], each[2]]}`"
                if (each[1], each[2]) in ours
                else f"r.`{theirs[each[1], each[2]]}`"
            ),
            text,
        )

    arguments = [repr(keys)] if keys else []
    if join.conditions:
        arguments.append(f"condition={' AND '.join(f'({sided(each.spark)})' for each in join.conditions)!r}")
    by = block.group.by if block.group is not None else None
    one_side = {block.first.id: "left", item.id: "right"}.get(by) if len(block.joins) == 1 else None
    match bound.kind:
        case "within":
            arguments.append(f"within='{bound.ahead} microseconds'")
        case "keep":
            arguments.append(f"keep='{bound.ahead} microseconds'")
        case "interval":
            if bound.by not in {None, block.first.id} or number:
                raise Unspeakable("a bound by the time of one table in Python")
            arguments.append(f"keep=('{bound.ahead} microseconds', '{bound.back} microseconds')")
            if join.how not in {"semi", "anti"} and one_side is None:
                arguments.append("time='earliest'")
        case "last":
            arguments.append(f"last={bound.ahead}")
        case _:
            raise Unspeakable(bound.kind)
    if by is not None and one_side is None:
        raise Unspeakable("windows by one of several tables in Python")
    if one_side:
        arguments.append(f"time={one_side!r}")
    if join.how != "inner":
        arguments.append(f"how={join.how!r}")
    if join.how not in {"semi", "anti"}:
        names |= theirs
        arguments.append(f"suffixes=('', '_j{number}')")
    return f"{left}.{'join' if keys else 'cross'}({right}, {', '.join(arguments)})"


def window_verb(speller: Speller, window: Window, *, revising: bool = False) -> str:
    """A window by a method; at the end of a query it may give early results and corrections."""
    if revising and window.kind != "session" and speller.chance(0.5):
        rule = speller.rng.choice(["early='{} microseconds'", "lateness='{} microseconds'"])
        inner = window_verb(speller, window)
        return f"{inner[:-1]}, {rule.format(max(window.slide, SECOND))})"

    if window.kind in {"tumble", "hop"} and speller.chance(0.2):
        inner = window_verb(speller, window)
        return inner if inner.startswith(".windows") else f".windows(ps{inner})"
    offset = f", offset='{window.offset} microseconds'" if window.offset else ""
    size = f"'{window.size} microseconds'"
    slide = f"'{window.slide} microseconds'"
    match window.kind:
        case "tumble":
            return f".window({size}{offset})"
        case "hop":
            return f".window({size}, slide={slide}{offset})"
        case "cumulate":
            return f".cumulate({size}, {slide}{offset})"
    return f".session({size})"
