"""One SELECT as text: its names, FROM, WHERE, groups and windows; one of many spellings."""

import re
from typing import TYPE_CHECKING

from fuzz.program import (
    MARK,
    Aggregate,
    Block,
    Bound,
    Expr,
    Item,
    Join,
    Sub,
    Table,
    Union,
    Window,
    relations_of,
)
from fuzz.text_names import BOUNDS, KEYWORDS, PLAIN_NAME, Unspeakable, outer_items, quote, shown

if TYPE_CHECKING:
    from fuzz.text_statement import Statement

ALIASES = ("a", "b", "c", "l", "r", "x", "t", "s", "q1", "Zz")


class Scope:
    """The names of one FROM: what is known of each item."""

    def __init__(self, items: list[tuple[Item, str]]) -> None:
        self.items = items
        self.hidden: set[str] = set()

    def names(self, upto: int | None = None) -> list[tuple[Item, str]]:
        return [each for each in self.items[:upto] if each[0].id not in self.hidden]


class BlockWriter:
    """One SELECT; `scopes` are those around it, the innermost last."""

    def __init__(self, statement: "Statement", block: Block, scopes: list[Scope]) -> None:
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
        if not united and self.speller.chance(0.35 if self.block.joins else 0.1):
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
