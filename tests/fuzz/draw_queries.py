"""Random programs from one whole number: SELECTs with joins, sub-queries, windows and groups, nested."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

from fuzz.draw_expressions import PLAIN, aggregate, condition, value
from fuzz.draw_groups import BOUNDS, GroupDrawer
from fuzz.draw_joins import JoinDrawer
from fuzz.draw_values import FLOATS, INTEGERS, NAMES, SECOND, draw_tables
from fuzz.draw_verbs import draw_verb
from fuzz.oracle import Oracle, OracleFailed, evaluate
from fuzz.program import (
    MARK,
    Block,
    Bound,
    Column,
    Expr,
    Grouping,
    Item,
    Join,
    Program,
    Ranked,
    Relation,
    Sub,
    Table,
    Union,
    column_of,
    combined,
)
from fuzz.text import Unspeakable, program_text

TIME = Column("window_start", "timestamp")


EMPTY = 0.1
"""The share of drawn queries that may be without a row; others are drawn again until there is one."""
OPPOSITE = {"exists": "not exists", "not exists": "exists", "in": "not in", "not in": "in"}


def draw(seed: int, *, verbatim: bool | None = None) -> Program:
    """The program of a seed."""
    rng = Random(seed)
    if verbatim is None:
        verbatim = rng.random() < 0.35
    zone = rng.choices(["UTC", "America/New_York", "Asia/Kolkata"], [10, 1, 1])[0]
    while True:
        drawer = Drawer(rng, verbatim=verbatim, zone=zone)
        query = drawer.top()
        if rng.random() >= EMPTY and not drawer.has_rows(query):
            continue
        epochs, channels = rng.choice([1, 2, 2, 3, 5, 8]), rng.choice([1, 2, 2, 3, 5])
        for _ in range(5):
            found = Program(query, seed, epochs, channels, rng.randrange(1 << 30), verbatim, zone)
            try:
                program_text(found)
            except Unspeakable:
                continue
            return found


def turned(block: Block) -> Iterator[Block]:
    """The block with one of its conditions turned round, each in turn."""
    for place, each in enumerate(block.where):
        for other in opposites(each):
            yield replace(block, where=put(block.where, place, other))
    if block.group is not None:
        for each in block.group.having:
            for other in opposites(each):
                yield replace(block, group=replace(block.group, having=(other,)))
    for place, each in enumerate(block.subs):
        other = replace(each, kind=OPPOSITE[each.kind])
        yield replace(block, subs=put(block.subs, place, other))
    for place, each in enumerate(block.joins):
        for one in each.conditions:
            for other in opposites(one):
                yield replace(block, joins=put(block.joins, place, replace(each, conditions=(other,))))


def opposites(condition: Expr) -> Iterator[Expr]:
    """What is true where a condition is not."""
    for text in ("NOT ({0})", "({0}) IS NULL"):
        yield combined(text, "boolean", condition)


def put(parts: tuple, place: int, part: object) -> tuple:
    return (*parts[:place], part, *parts[place + 1 :])


class Drawer(JoinDrawer, GroupDrawer):
    """Draws relations over the tables of one program."""

    def __init__(self, rng: Random, *, verbatim: bool, zone: str = "UTC") -> None:
        self.rng, self.verbatim, self.zone = rng, verbatim, zone
        self.oracle = Oracle()
        self.tables = draw_tables(rng, rng.choice([1, 1, 2, 2, 3, 4]))
        times = sorted(
            {
                row[each.names.index(each.time)]
                for each in self.tables
                for row in each.rows
                if row[each.names.index(each.time)] is not None
            }
        )
        gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
        grid = min(gaps, default=1.0)
        self.unit = max(int(grid * SECOND), SECOND // 4) if grid < 60 else 60 * SECOND
        self.ids = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def has_rows(self, query: Relation) -> bool:
        try:
            return evaluate(query, self.zone, self.oracle).num_rows > 0
        except OracleFailed:
            return False

    def top(self) -> Relation:
        kind = self.rng.random()
        if kind < 0.08:
            return self.union()
        if kind < 0.16:
            return self.ranked(1)
        if kind < 0.34 and not self.verbatim:
            return draw_verb(self, 1)
        return self.block(2, top=True)

    def item(self, depth: int, *, timed: bool = False) -> Item:
        """An item of FROM: a table, mostly; `timed` ones have their event time in sight."""
        self.ids += 1
        name = f"f{self.ids}"
        if depth <= 0 or self.chance(0.5):
            return Item(name, self.rng.choice(self.tables))
        kind = self.rng.random()
        if kind < 0.25 and not self.verbatim:
            found = draw_verb(self, depth - 1, inner=True)
            if not (timed and found.time is None):
                return Item(name, found)
        if kind < 0.36:
            return Item(name, self.union())
        found = self.block(depth - 1, timed=timed or self.verbatim)
        if (timed or self.verbatim) and found.time is None:
            return Item(name, self.rng.choice(self.tables))
        return Item(name, found)

    # -- blocks --------------------------------------------------------------------------------------------

    def block(self, depth: int, *, top: bool = False, timed: bool = False) -> Block:
        """`timed` ones select their event time; only one at the top may be updating."""
        rng = self.rng
        grouped = self.chance(0.5)
        joins = rng.choices([0, 1, 2, 3], [10, 7, 2, 1])[0]
        if timed and not grouped and self.verbatim:
            joins = 0
        first = self.item(depth, timed=True if self.verbatim else self.chance(0.7))
        function = None
        if not self.verbatim and first.time is not None and self.chance(0.15) and not joins:
            function = self.window(kinds=("tumble", "hop", "cumulate"))
            first = Item(first.id, first.relation, function)
        if function is None and not self.verbatim and first.time is not None and self.chance(0.14):
            return self.by_window(first)
        if function is None and not self.verbatim and first.time is not None and self.chance(0.08):
            return self.by_session(first, timed=timed)
        visible, made = self.joined(first, joins, depth)
        given = [
            column_of(item, each)
            for item in visible
            for each in (item.relation.columns if grouped else item.columns)
        ]
        where = tuple(condition(rng, given) for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2, 3])))
        where += self.guarded(first, made)
        subs = []
        aged = any(each.bound.kind == "last" for each in made) and self.chance(0.8)
        if self.chance(0.25) and function is None and not aged:
            found = self.sub(visible)
            subs = [found] if found is not None else []
        in_order = not made and not subs and not self.verbatim and self.comes_in_order(first.relation)
        group = self.group(visible, made, given, function, top, in_order=in_order) if grouped else None
        where += self.on_windows(first, group)
        if timed and group is not None and group.window is None:
            group = None
        if group is not None:
            select = self.grouped_select(group, timed=timed)
        else:
            select = self.select(visible, made, given, timed, first)
        found = self.revived(Block(first, tuple(made), where, tuple(subs), group, select))
        made, subs = found.joins, found.subs
        form = "sql"
        speakable = function is None and (group is None or group.sets is None)
        speakable = speakable and all(each.kind != "not in" for each in subs)
        speakable = speakable and all(
            each.bound.kind != "interval" or (each.bound.by == first.id and not place)
            for place, each in enumerate(made)
        )
        speakable = speakable and (group is None or group.by is None or len(made) < 2)
        # By a method, a row without a partner goes by its own time; in SQL the other table's time is null.
        if group is not None and group.by is not None and made:
            whole = {"inner": {first.id, made[0].item.id}, "left": {first.id}, "right": {made[0].item.id}}
            speakable = speakable and group.by in whole.get(made[0].how, {first.id} - {made[0].item.id})
            speakable = speakable and made[0].how != "full"
        if not self.verbatim and speakable and self.chance(0.35):
            form = "python"
        return found if form == "sql" else replace(found, form=form)

    def comes_in_order(self, relation: Relation) -> bool:
        """Whether the rows of a table come in the order of event time, no two at once."""
        if not isinstance(relation, Table) or relation.key is not None:
            return False
        place = relation.names.index(relation.time)
        times = [row[place] for row in relation.rows if row[place] is not None]
        return all(one < other for one, other in pairwise(times))

    def revived(self, block: Block) -> Block:
        """A block without a row says the opposite somewhere, if that brings rows."""
        others = list(turned(block))
        if not others or self.chance(EMPTY) or self.has_rows(block):
            return block
        return next(filter(self.has_rows, others), block)

    def on_windows(self, first: Item, group: Grouping | None) -> tuple[Expr, ...]:
        """A condition on the windows of a table function, which may read keys beside them."""
        if first.window is None or group is None or self.chance(0.6):
            return ()
        given = [column_of(first, Column(name, "timestamp")) for name in BOUNDS]
        if group.sets is None:
            given += [each for _, each in group.keys if MARK.fullmatch(each.spark)]
        return (condition(self.rng, given, 1),)

    def guarded(self, first: Item, joins: list[Join]) -> tuple[Expr, ...]:
        """A condition that raises for rows without a partner; only the product leaves it above the join."""
        if self.verbatim or len(joins) != 1 or joins[0].how not in {"inner", "semi"} or self.chance(0.4):
            return ()
        left, right = first.relation, joins[0].item.relation
        for one, other in joins[0].keys if isinstance(left, Table) and isinstance(right, Table) else ():
            marks = [MARK.fullmatch(each.spark) for each in (one, other)]
            if not all(marks) or not {one.type, other.type} <= set(INTEGERS):
                continue
            ours, theirs = (
                {row[table.names.index(mark[2])] for row in table.rows} - {None}
                for table, mark in zip((left, right), marks, strict=True)
            )
            alone = sorted(each for each in ours - theirs if abs(each) < 2**31)
            if alone and all(abs(each) < 2**62 for each in ours):
                difference = f"CAST({{0}} AS bigint) - ({self.rng.choice(alone)})"
                texts = (f"100 % ({difference}) < 7", f"100 % nullif({difference}, 0) < 7")
                return (combined(texts, "boolean", one, tags=("guarded",)),)
        return ()

    def by_session(self, first: Item, *, timed: bool) -> Block:
        """SESSION as a table function: its keys are those of the groups, and WHERE reads no other column."""
        fit = [
            each
            for each in first.relation.columns
            if each.exact and each.type in PLAIN and each.type not in FLOATS and each.name != first.time
        ]
        some = self.rng.sample(fit, min(len(fit), self.rng.choice([0, 1, 1, 2])))
        window = self.window(kinds=("session",))
        item = Item(first.id, first.relation, window, tuple(each.name for each in some))
        given = [column_of(item, each) for each in first.relation.columns]
        keys = tuple((each.name, column_of(item, each)) for each in some)
        if {name.lower() for name, _ in keys} & {*BOUNDS, "change"}:
            return self.by_window(first)
        aggregates = {f"a{place}": aggregate(self.rng, given) for place in range(self.rng.choice([1, 2]))}
        names = {name for name, _ in keys}
        group = Grouping(
            keys, tuple((name, one) for name, one in aggregates.items() if name not in names), window
        )
        chosen = [each for _, each in keys]
        where = (condition(self.rng, chosen, 1),) if keys and self.chance(0.4) else ()
        where += self.on_windows(item, group)
        return self.revived(Block(item, (), where, (), group, self.grouped_select(group, timed=timed)))

    def by_window(self, first: Item) -> Block:
        """Two table functions joined by their windows, or one with a sub-query in the same window."""
        rng = self.rng
        window = self.window(kinds=("tumble", "hop", "hop"))
        first = Item(first.id, first.relation, window)
        other = self.item(0)
        item = Item(other.id, other.relation, window)
        keys = tuple(
            pair
            for pair in self.drawn_keys([first], item)
            if not any(each.spark.endswith(("_start»", "_end»")) for each in pair)
        )
        bound = Bound("window", by=first.id)
        how = rng.choice(["inner", "left", "left", "right", "full", "semi", "anti"])
        conditions = self.pair_conditions([Item(first.id, first.relation)], Item(item.id, item.relation))
        joins, subs, visible = (), (), [Item(first.id, first.relation)]
        if how in {"semi", "anti"} and self.chance(0.7):
            kind = "exists" if how == "semi" else "not exists"
            subs = (Sub(kind, item, keys, bound, conditions),)
        else:
            if not keys and how in {"left", "right", "full"}:
                how = "inner"
            joins = (Join(how, item, keys, bound, conditions),)
            visible += [] if how in {"semi", "anti"} else [Item(item.id, item.relation)]
        given = [column_of(each, column) for each in visible for column in each.relation.columns]
        select = [(f"c{place}", value(rng, given)) for place in range(rng.choice([1, 2, 4]))]
        if how in {"inner", "left"} and self.chance(0.5):
            select += [(name, column_of(first, Column(name, "timestamp"))) for name in BOUNDS]
        return Block(first, joins, (), subs, None, tuple(select))

    def select(self, visible, made, given, timed, first) -> tuple[tuple[str, Expr], ...]:
        rng = self.rng
        found: dict[str, tuple[str, Expr]] = {}
        paired = any(each.how not in {"semi", "anti"} for each in made)
        every = [(each.name, column_of(item, each)) for item in visible for each in item.columns]
        if len({name.lower() for name, _ in every}) == len(every) and self.chance(0.2):
            return tuple(every)
        if (timed or self.chance(0.3)) and not paired and first.time is not None:
            name = first.time
            found[name.lower()] = (name, column_of(first, Column(name, "timestamp")))
        for _ in range(rng.choice([1, 2, 3, 4, 6])):
            each = value(rng, given)
            mark = MARK.fullmatch(each.spark)
            name = mark[2] if mark and self.chance(0.7) else f"c{len(found)}"
            if self.chance(0.1):
                name = rng.choice(NAMES)
            if name.lower() in found or (name.lower() in self.pinned(visible) and not self.chance(0.02)):
                name = f"c{len(found)}"
            found[name.lower()] = (name, each)
        return tuple(found.values())

    def pinned(self, visible) -> set[str]:
        return {*BOUNDS, "change", "pair_time", *(each.time.lower() for each in visible if each.time)}

    # -- unions and first rows -----------------------------------------------------------------------------

    def union(self) -> Relation:
        rng = self.rng
        first = rng.choice(self.tables)
        alike = [
            each for each in self.tables if each.time == first.time and len(self.shared(first, each)) > 1
        ]
        parts = [first, *(rng.choice(alike) for _ in range(rng.choice([1, 1, 2])))]
        names = set.intersection(*({each.name for each in self.shared(first, part)} for part in parts))
        chosen = [each for each in first.columns if each.name in names]
        blocks = []
        for part in parts:
            self.ids += 1
            item = Item(f"f{self.ids}", part)
            given = [column_of(item, each) for each in part.columns]
            where = (condition(rng, given, 1),) if self.chance(0.4) else ()
            select = tuple((each.name, column_of(item, each)) for each in chosen)
            blocks.append(Block(item, (), where, (), None, select))
        return Union(tuple(blocks))

    def shared(self, one: Table, other: Table) -> list[Column]:
        return [each for each in one.columns if each in other.columns]

    def ranked(self, depth: int) -> Relation:
        rng = self.rng
        if not self.verbatim and self.chance(0.3):
            block = rng.choice(self.tables)
            function = self.window(kinds=("tumble", "hop", "cumulate"))
        else:
            block, function = self.windowed(depth), None
        self.ids += 1
        plain = [
            each for each in block.columns if each.exact and each.type in PLAIN and each.name not in BOUNDS
        ]
        if not plain:
            return self.block(depth)
        item = Item(f"f{self.ids}", block, function)
        order = tuple((each.name, self.chance(0.5)) for each in rng.sample(plain, rng.randint(1, len(plain))))
        rest = [each.name for each in plain if each.name not in dict(order)]
        partition = tuple(rng.sample(rest, rng.randint(0, min(1, len(rest)))))
        taken = {each.name.lower() for each in block.columns}
        rank = next(name for name in ("r", "n", "rank_", "r_2") if name not in taken)
        most = rng.choice([1, 2, 2, 3])
        left_out = rng.randint(1, most - 1) if most > 1 and self.chance(0.6) else 0
        but = tuple(rng.sample(range(1, most), left_out))
        return Ranked(item, partition, order, most, self.chance(0.4), rank, but)

    def windowed(self, depth: int) -> Block:
        """A block of time windows that selects their bounds."""
        while True:
            found = self.block(depth, timed=True)
            if (
                found.group is not None
                and found.group.window is not None
                and found.group.window.kind != "session"
            ):
                return found
