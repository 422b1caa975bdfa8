"""Random joins and sub-queries in WHERE: their bounds, keys and conditions."""

from dataclasses import replace
from random import Random

from fuzz.draw_expressions import PLAIN, condition
from fuzz.draw_values import INTEGERS
from fuzz.program import MARK, Bound, Expr, Item, Join, Sub, Table, column_of, combined

MANY = 40
"""So many last rows that a product with them divides its work among channels."""


class JoinDrawer:
    """The part of the drawer that joins items of FROM."""

    rng: Random
    unit: int
    tables: list[Table]
    ids: int
    verbatim: bool

    def bound(self, visible: list[Item], item: Item, *, sub: bool = False) -> Bound | None:
        rng, unit = self.rng, self.unit
        own = [each for each in visible if each.time is not None]
        kinds = []
        if own and item.time is not None:
            kinds += ["interval"] * 3
        if not self.verbatim:
            kinds += ["within", "keep"]
            kinds += (
                [] if sub or len(visible) > 1 or not self.distinct_times(visible[0], item) else ["last"] * 6
            )
        if not kinds:
            return None
        kind = rng.choice(kinds)
        ahead, back = (rng.choice([0, 1, 2, 3, 5, 10]) * unit for _ in range(2))
        if kind == "interval":
            return Bound(kind, back, ahead, rng.choice(own).id)
        if kind == "last":
            return Bound(kind, 0, rng.choice([1, 2, 3]))
        return Bound(kind, ahead, ahead)

    def keys(self, visible: list[Item], item: Item) -> list[tuple[Expr, Expr]]:
        """Pairs of columns that can be equal."""
        pairs = []
        for one in visible:
            for left in one.columns:
                for right in item.columns:
                    integers = left.type in INTEGERS and right.type in INTEGERS and self.chance(0.2)
                    alike = left.type == right.type or integers
                    both = column_of(one, left), column_of(item, right)
                    if alike and left.type == "struct<a:int,b:string>":
                        pairs.append(tuple(combined("{0}.a", "int", each, tags=("field",)) for each in both))
                    alike = alike and (left.type in PLAIN or self.chance(0.02))
                    if alike and left.exact and right.exact and left.name != one.time:
                        pairs.append(both)
        return pairs

    def drawn_keys(self, visible, item) -> tuple[tuple[Expr, Expr], ...]:
        pairs = self.keys(visible, item)
        count = min(len(pairs), self.rng.choices([0, 1, 2, 3], [2, 12, 5, 1])[0])
        chosen, seen = [], set()
        for one, other in self.rng.sample(pairs, count):
            if (one.spark in seen or other.spark in seen) and not self.chance(0.4):
                # A column equals two others seldom.
                continue
            seen |= {one.spark, other.spark}
            chosen.append((one, other))
        if chosen and self.chance(0.2):
            one, other = chosen[-1]
            made = [self.computed(each) for each in (one, other)]
            if made[0].type == made[1].type:
                chosen[-1] = tuple(made)
        return tuple(chosen)

    def computed(self, each: Expr) -> Expr:
        if each.type == "string":
            return Expr(f"{each.spark} || 'z'", f"{each.duck} || 'z'", "string")
        if each.type in INTEGERS:
            return Expr(f"CAST({each.spark} AS bigint)", f"CAST({each.duck} AS BIGINT)", "bigint")
        return each

    def pair_conditions(self, visible, item) -> tuple[Expr, ...]:
        given = [column_of(each, column) for each in (*visible, item) for column in each.columns]
        plain = [each for each in given if each.exact]
        return tuple(condition(self.rng, plain, 1) for _ in range(self.rng.choice([0, 0, 0, 1, 1])))

    def joined(self, first: Item, count: int, depth: int) -> tuple[list[Item], list[Join]]:
        """So many joins at most, and the items whose columns are in sight after them."""
        visible, made = [first], []
        for _ in range(count):
            if made and made[-1].bound.kind == "last" and self.chance(0.8):
                # Rows of any age: little is taken after them.
                break
            join = self.join(visible, depth)
            if join is None:
                continue
            made.append(join)
            if join.how not in {"semi", "anti"}:
                visible.append(join.item)
        return visible, made

    def join(self, visible: list[Item], depth: int) -> Join | None:
        rng = self.rng
        item = self.item(depth - 1, timed=True if self.verbatim else self.chance(0.6))
        bound = self.bound(visible, item)
        if bound is None:
            return None
        how = rng.choices(["inner", "left", "right", "full", "semi", "anti"], [5, 3, 3, 3, 2, 2])[0]
        if product := bound.kind == "last" and self.chance(0.5):
            bound = replace(bound, ahead=rng.choice([2, MANY, MANY]))
        keys = () if product else self.drawn_keys(visible, item)
        conditions = self.pair_conditions(visible, item)
        if not keys and how not in {"inner", "semi", "anti"}:
            how = "inner"
        if bound.kind == "last" and (how in {"semi", "anti"} or visible[0].window):
            bound = Bound("within", self.unit, self.unit)
        using = (
            bool(keys)
            and not self.verbatim
            and bound.kind in {"within", "keep", "last"}
            and len(visible) == 1
            and all(self.same_name(*pair) for pair in keys)
            and self.chance(0.7)
        )
        return Join(how, item, keys, bound, () if using else conditions, using)

    def same_name(self, one: Expr, other: Expr) -> bool:
        marks = [MARK.fullmatch(each.spark) for each in (one, other)]
        return all(marks) and marks[0][2] == marks[1][2]

    def distinct_times(self, *items: Item) -> bool:
        """Whether no two rows of a side have one time, so that the last rows are certain."""
        for each in items:
            table = each.relation
            if not isinstance(table, Table):
                return False
            place = table.names.index(table.time)
            times = [row[place] for row in table.rows]
            if len(times) != len(set(times)):
                return False
        return True

    def sub(self, visible: list[Item]) -> Sub | None:
        rng = self.rng
        self.ids += 1
        relation = rng.choice(self.tables)
        if isinstance(visible[0].relation, Table) and self.chance(0.4):
            relation = visible[0].relation
        item = Item(f"f{self.ids}", relation)
        if self.chance(0.2):
            item = self.item(1, timed=True)
        bound = self.bound(visible, item, sub=True)
        if bound is None:
            return None
        keys = self.drawn_keys(visible, item)
        conditions = self.pair_conditions(visible, item) if self.chance(0.5) else ()
        inner = (
            (condition(rng, [column_of(item, each) for each in item.columns], 0),) if self.chance(0.4) else ()
        )
        kind = rng.choice(["exists", "exists", "not exists", "in", "not in"])
        if kind.endswith("in") and (not keys or keys[0][0].type not in PLAIN):
            kind = "exists"
        return Sub(kind, item, keys, bound, conditions, inner)
