"""Random stateful operators; each function gives the nodes to add, none where nothing fits."""

import dataclasses
from collections.abc import Callable, Sequence

from graphs import expressions
from graphs.draft import Draft
from graphs.graph import (
    Aggregates,
    Column,
    Counted,
    Growing,
    Joined,
    Keys,
    Node,
    Sessioned,
    Sliding,
    Windowed,
    joined,
    mean_type,
    sum_type,
    windowed,
)

KEYS = ("string", "int", "bigint", "boolean", "date")


def window(draft: Draft, _left: int) -> list[Node]:
    """Windows of one shape or of several, now and then with other rules than usual."""
    rng, quarter = draft.rng, draft.clock.unit // 4
    found = _groups(draft)
    if found is None:
        return []
    place, keys, aggregates, types = found
    shapes = [_shape(draft)]
    while rng.random() < 0.25 and len(shapes) < 3:
        more = _shape(draft)
        shapes += [more] if not any(_lengths(more) & _lengths(each) for each in shapes) else []
    rules: dict[str, object] = {}
    chance = rng.random()
    if chance < 0.1:
        rules["late"] = "drop"
    elif chance < 0.25:
        rules["lateness"] = rng.randint(1, 40) * quarter
    if 0.2 < chance < 0.35:
        rules["early"] = rng.randint(1, 16) * quarter
    return [windowed(draft.nodes, place, Windowed(keys, tuple(shapes), aggregates, **rules), types)]


def _shape(draft: Draft) -> Sliding | Growing:
    rng, quarter = draft.rng, draft.clock.unit // 4
    if rng.random() < 0.2:
        step = rng.randint(1, 8)
        size = step * rng.randint(1, 4)
        offset = rng.randrange(size * quarter) if rng.random() < 0.3 else 0
        return Growing(size * quarter, step * quarter, offset)
    size = rng.randint(1, 32)
    slide = size if rng.random() < 0.5 else rng.randint(max(1, size // 6), size + size // 3)
    offset = rng.randrange(slide * quarter) if rng.random() < 0.3 else 0
    return Sliding(size * quarter, slide * quarter, offset)


def _lengths(shape: Sliding | Growing) -> set[int]:
    return {shape.size} if isinstance(shape, Sliding) else {*range(shape.step, shape.size + 1, shape.step)}


def session(draft: Draft, _left: int) -> list[Node]:
    found = _groups(draft)
    if found is None:
        return []
    place, keys, aggregates, types = found
    gap = draft.rng.choice([1, 2, 4, 8, 16]) * (draft.clock.unit // 4)
    late = draft.rng.choice(["count", "count", "drop"])
    return [windowed(draft.nodes, place, Sessioned(keys, gap, aggregates, late), types)]


def counts(draft: Draft, _left: int) -> list[Node]:
    """Of exact columns alone, since what is read decides on the order of rows of one time."""
    found = _groups(draft, exact=True)
    if found is None:
        return []
    place, keys, aggregates, types = found
    size, slide = draft.rng.randint(1, 6), draft.rng.randint(1, 6)
    return [windowed(draft.nodes, place, Counted(keys, size, slide, aggregates), types)]


def _groups(draft: Draft, *, exact: bool = False) -> tuple[int, Keys, Aggregates, dict[str, Column]] | None:
    """A relation, keys and aggregates over it, and the columns of both."""
    place, rng = draft.pick(), draft.rng
    if draft.facts.endless(place):
        return None
    columns = draft.nodes[place].columns
    fit = [each for each in columns if each.exact and each.type in {"string", *expressions.WHOLE}]
    chosen = rng.sample(fit, min(len(fit), rng.choice([0, 1, 1, 2])))
    keys, types = [], {}
    for each in chosen:
        name, sql, column = each.name, each.name, each
        chance = rng.random()
        if each.type in expressions.WHOLE and chance < 0.25:
            name, sql = draft.name(), f"{each.name} % 2"
        elif chance < 0.45:
            name = draft.name()
            sql, type_ = expressions.drawn(rng, columns, KEYS)
            column = Column(name, type_, plain=False)
        keys.append((name, sql))
        types[name] = dataclasses.replace(column, name=name)
    aggregates = []
    for _ in range(rng.randint(1, 3)):
        name = draft.name()
        function, argument, *made = _aggregate(draft, [each for each in columns if each.exact or not exact])
        aggregates.append((name, function, argument))
        types[name] = Column(name, *made)
    keys.sort(key=lambda key: key[0] != key[1])  # group_by() takes names first, then expressions
    return place, tuple(keys), tuple(aggregates), types


def _aggregate(draft: Draft, columns: Sequence[Column]) -> tuple[str, str | None, str, bool, bool]:
    """A function, its argument, and the type of the result, whether it is exact, and whether it is plain."""
    rng = draft.rng
    found = rng.choice(columns)
    text = expressions.addend(found)
    if rng.random() < 0.3:
        sql, type_ = expressions.drawn(rng, columns)
        found = Column(f"({sql})", type_, plain=False)
        text = expressions.addend(found)
    kinds = ["count", "min", "max"]
    if found.exact and expressions.is_number(found):
        kinds += ["sum", "sum", "avg"]
    function = rng.choice(kinds)
    if function == "count":
        return "count", rng.choice([None, found.name]), "bigint", True, True
    if function == "avg":
        return "avg", text, mean_type(found.type), False, True
    if function == "sum":
        return "sum", text, sum_type(found.type), found.plain or found.type != "double", True
    return function, found.name, found.type, found.exact, found.plain


def join(draft: Draft, _left: int) -> list[Node]:
    rng, quarter = draft.rng, draft.clock.unit // 4
    bound, how = rng.choice(["within", "within", "keep", "size"]), _how(draft, "semi", "anti")
    given = {"within": rng.choice([0, 1, 4, 8, 24]) * quarter} if bound == "within" else {}
    if bound == "keep":
        given["keep"] = tuple(rng.choice([0, 1, 4, 24]) * quarter for _ in range(2))
    if bound == "size":
        given["size"] = rng.choice([2, 4, 12]) * quarter
    elif how not in {"semi", "anti"} and rng.random() < 0.4:
        given["time"] = rng.choice(["earliest", "latest", "left", "right"])
    return _joined(draft, _join_keys, how=how, **given)


def last(draft: Draft, _left: int) -> list[Node]:
    return _joined(draft, _join_keys, last=draft.rng.randint(1, 3), how=_how(draft))


def cross(draft: Draft, _left: int) -> list[Node]:
    within = draft.rng.choice([0, 1, 2, 4]) * (draft.clock.unit // 4)
    return _joined(draft, lambda *_: (), within=within, how="inner")


def _how(draft: Draft, *more: str) -> str:
    return draft.rng.choices(["inner", "left", "right", "full", *more], [4, 2, 2, 2, *(2 for _ in more)])[0]


def _joined(
    draft: Draft,
    keys: Callable[[Draft, int, int], Keys | None],
    *,
    how: str,
    within: int | None = None,
    last: int | None = None,
    **given: object,
) -> list[Node]:
    rng = draft.rng
    left = draft.pick()
    right = left if rng.random() < 0.15 else draft.pick()
    endless = draft.facts.endless(left) or draft.facts.endless(right)
    chosen = None if endless else keys(draft, left, right)
    if chosen is None or (last and not _in_order(draft, left, right, chosen)):
        return []
    condition = None
    if rng.random() < (0.7 if not chosen else 0.35):
        condition = expressions.pair_condition(rng, draft.nodes[left].columns, draft.nodes[right].columns)
    number = len(draft.nodes)
    operator = Joined(chosen, within, last, how, condition, (f"_a{number}", f"_b{number}"), **given)
    return [joined(draft.nodes, left, right, operator)]


def _join_keys(draft: Draft, left: int, right: int) -> Keys | None:
    """One or two pairs of columns that can be compared, more often two of one name."""
    families = [("string",), expressions.WHOLE]
    pairs = [
        (one.name, other.name)
        for family in families
        for one in draft.nodes[left].columns
        for other in draft.nodes[right].columns
        if one.type in family and other.type in family and one.exact and other.exact
    ]
    same = [pair for pair in pairs if pair[0] == pair[1]]
    pairs = same if same and draft.rng.random() < 0.8 else pairs
    if not pairs:
        return None
    first = draft.rng.choice(pairs)
    rest = [pair for pair in pairs if pair[0] != first[0] and pair[1] != first[1]]
    return (first, draft.rng.choice(rest)) if rest and draft.rng.random() < 0.3 else (first,)


def _in_order(draft: Draft, left: int, right: int, keys: Keys) -> bool:
    """Whether no two rows of a side have the same key and time: ties are broken by a digest."""
    if not draft.clock.distinct:
        return False
    ours, theirs = draft.facts.distinct(left), draft.facts.distinct(right)
    return (
        ours is not None
        and theirs is not None
        and ours <= {one for one, _ in keys}
        and theirs <= {other for _, other in keys}
    )
