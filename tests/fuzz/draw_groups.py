"""Random windows and groups: keys, aggregates, sets of keys, and what is selected of them."""

from random import Random

from fuzz.draw_expressions import PLAIN, aggregate, condition, ordered, value
from fuzz.draw_values import NAMES
from fuzz.program import MARK, Expr, Grouping, Window

BOUNDS = ("window_start", "window_end")


class GroupDrawer:
    """The part of the drawer that groups rows."""

    rng: Random
    unit: int
    verbatim: bool

    def window(self, kinds=("tumble", "hop", "hop", "session")) -> Window:
        rng, unit = self.rng, self.unit
        kind = rng.choice(kinds)
        size = rng.choice([1, 2, 3, 4, 6, 10]) * unit
        offset = rng.choice([0, 0, 0, 1]) * unit
        if kind == "tumble":
            return Window(kind, size, 0, offset % size)
        if kind == "session":
            return Window(kind, size)
        if kind == "cumulate":
            step = rng.choice([1, 2]) * unit
            return Window(kind, step * rng.choice([2, 3, 4]), step, 0)
        slides = [each for each in (1, 2, 3, 5) if each * unit < size] or [1]
        slide = rng.choice(slides) * unit
        if self.chance(0.1) and not self.verbatim:
            slide = size + unit
        return Window(kind, size, slide, offset % slide)

    def group(  # noqa: C901 -- a line for each part
        self, visible, made, given, function, top, *, in_order=False
    ) -> Grouping | None:
        rng = self.rng
        paired = any(each.how not in {"semi", "anti"} for each in made)
        window, by = None, None
        if function is not None:
            window = function
        elif not (top and self.chance(0.2)):
            window = self.window()
            if self.verbatim or self.chance(0.3):
                own = [each for each in visible if each.time is not None]
                if not own or (len(visible) > 2 and not self.chance(0.1)):
                    return None
                by = rng.choice(own).id if paired else visible[0].id
        keyable = [
            each
            for each in given
            if each.exact
            and (each.type in PLAIN or self.chance(0.02))
            and not each.spark.endswith(("_start»", "_end»"))
        ] or given
        keys: dict[str, Expr] = {}
        known = {each.spark for each in keyable}
        joined = [each for join in made for pair in join.keys for each in pair if each.spark in known]
        for place in range(rng.choice([0, 1, 1, 2, 3])):
            each = value(rng, keyable) if self.chance(0.4) else rng.choice(keyable)
            if joined and self.chance(0.35):
                # Stages that go by the same keys may share channels.
                each = rng.choice(joined)
            mark = MARK.fullmatch(each.spark)
            name = mark[2] if mark and mark[2].lower() not in BOUNDS and self.chance(0.7) else f"g{place}"
            if name.lower() not in {each.lower() for each in keys}:
                keys[name] = each
        names = [name for name in (f"a{place}" for place in range(9)) if name not in keys]
        aggregates = {name: aggregate(rng, given) for name in names[: rng.choice([0, 1, 1, 2, 3, 4])]}
        if in_order and self.chance(0.8) and names[4:]:
            made_in_order = ordered(rng, given)
            aggregates |= {names[4]: made_in_order} if made_in_order is not None else {}
        if not aggregates and not keys:
            aggregates = {names[0]: aggregate(rng, given)}
        sets = None
        if (
            len(keys) >= 1
            # grouping(k) of a key that stands twice means both.
            and len({each.spark for each in keys.values()}) == len(keys)
            and aggregates
            and self.chance(0.15)
            and (window is None or window.kind != "session")
        ):
            places = range(len(keys))
            rollup = tuple(tuple(places[:end]) for end in range(len(keys), -1, -1))
            cube = tuple(
                tuple(p for p in places if mask >> p & 1) for mask in range((1 << len(keys)) - 1, -1, -1)
            )
            some = tuple(rng.sample(cube, rng.randint(1, len(cube))))
            # A key that is in no set is no key.
            some = some if set().union(*some) == set(places) else rollup
            sets = rng.choice([rollup, cube, some])
            # grouping_id() counts keys in the order in which the sets name them.
            order = list(dict.fromkeys(place for chosen in sets for place in chosen))
            keys = dict(list(keys.items())[place] for place in order)
            sets = tuple(tuple(sorted(map(order.index, chosen))) for chosen in sets)
        rolled = False
        if (
            sets is not None
            and self.verbatim
            and window is not None
            and window.kind == "tumble"
            and self.chance(0.15)
        ):
            rolled, sets = True, None
        having = ()
        if aggregates and self.chance(0.25) and not rolled:
            results = [
                Expr(f"«g.{name}»", f"«g.{name}»", each.type, each.exact) for name, each in aggregates.items()
            ]
            having = (condition(rng, results, 0),)
        return Grouping(tuple(keys.items()), tuple(aggregates.items()), window, by, sets, having, rolled)

    def grouped_select(self, group: Grouping, *, timed: bool) -> tuple[tuple[str, Expr], ...]:
        found: list[tuple[str, Expr]] = []

        def mark(name: str, kind: str, *, exact: bool = True) -> Expr:
            return Expr(f"«g.{name}»", f"«g.{name}»", kind, exact)

        bounds = group.window is not None and (timed or self.chance(0.6))
        keys = [(name, mark(name, each.type)) for name, each in group.keys if self.chance(0.9) or timed]
        results = [(name, mark(name, each.type, exact=each.exact)) for name, each in group.aggregates]
        if bounds:
            found += [(name, mark(name, "timestamp")) for name in BOUNDS]
        rest = keys + results
        if self.chance(0.2):
            self.rng.shuffle(rest)
        for name, each in rest:
            alias = name
            if self.chance(0.15):
                alias = self.rng.choice(NAMES)
            if alias.lower() in {one.lower() for one, _ in found} or alias.lower() in {
                n.lower() for n, _ in rest
            } - {name.lower()}:
                alias = name
            if alias.lower() in {one.lower() for one, _ in found}:
                continue
            found.append((alias, each))
        taken = {one.lower() for one, _ in found}
        if group.sets is not None and self.chance(0.6) and taken.isdisjoint({"gr", "gid"}):
            name = self.rng.choice(group.keys)[0]
            found.append(("gr", mark(f"grouping({name})", "tinyint")))
            found.append(("gid", mark("grouping_id", "bigint")))
        if not found:
            every = [(name, mark(name, each.type)) for name, each in group.keys]
            found = [(name, mark(name, "timestamp")) for name in BOUNDS] if group.window else results or every
        return tuple(found)
