"""Random stateful operators; each function gives the nodes to add, none where nothing fits."""

from collections.abc import Callable

from graphs import expressions
from graphs.draft import Draft
from graphs.graph import Column, Joined, Node, Windowed, joined, windowed

Keys = tuple[tuple[str, str], ...]


def window(draft: Draft, _left: int) -> list[Node]:
    place, rng = draft.pick(), draft.rng
    if draft.facts.endless(place):
        return []
    columns = draft.nodes[place].columns
    fit = [each for each in columns if each.exact and each.type in {"string", *expressions.WHOLE}]
    chosen = rng.sample(fit, min(len(fit), rng.choice([0, 1, 1, 2])))
    keys, types = [], {}
    for each in chosen:
        if each.type in expressions.WHOLE and rng.random() < 0.3:
            name, sql = draft.name(), f"{each.name} % 2"
        else:
            name, sql = each.name, each.name
        keys.append((name, sql))
        types[name] = Column(name, each.type)
    aggregates = []
    for _ in range(rng.randint(1, 3)):
        name = draft.name()
        function, column, type_, exact = _aggregate(draft, columns)
        aggregates.append((name, function, column))
        types[name] = Column(name, type_, exact)
    keys.sort(key=lambda key: key[0] != key[1])  # group_by() takes names first, then expressions
    size = rng.randint(1, 32)
    slide = size if rng.random() < 0.5 else rng.randint(max(1, size // 6), size)
    quarter = draft.clock.unit // 4
    offset = rng.randrange(slide * quarter) if rng.random() < 0.3 else 0
    operator = Windowed(tuple(keys), size * quarter, slide * quarter, offset, tuple(aggregates))
    return [windowed(draft.nodes, place, operator, types)]


def _aggregate(draft: Draft, columns: tuple[Column, ...]) -> tuple[str, str | None, str, bool]:
    found = draft.rng.choice(columns)
    kinds = ["count", "min", "max"]
    if found.exact and expressions.is_number(found):
        kinds += ["sum", "sum", "avg"]
    function = draft.rng.choice(kinds)
    if function == "count":
        return "count", draft.rng.choice([None, found.name]), "bigint", True
    if function == "avg":
        return "avg", found.name, "double", False
    if function == "sum":
        return "sum", found.name, _sum_type(found.type), True
    return function, found.name, found.type, found.exact


def join(draft: Draft, _left: int) -> list[Node]:
    within = draft.rng.choice([0, 1, 4, 8, 24]) * (draft.clock.unit // 4)
    return _joined(draft, _join_keys, within=within, last=None, how=_how(draft))


def last(draft: Draft, _left: int) -> list[Node]:
    return _joined(draft, _join_keys, within=None, last=draft.rng.randint(1, 3), how=_how(draft))


def cross(draft: Draft, _left: int) -> list[Node]:
    within = draft.rng.choice([0, 1, 2, 4]) * (draft.clock.unit // 4)
    return _joined(draft, lambda *_: (), within=within, last=None, how="inner")


def _how(draft: Draft) -> str:
    return draft.rng.choices(["inner", "left", "right", "full"], [4, 2, 2, 2])[0]


def _joined(
    draft: Draft,
    keys: Callable[[Draft, int, int], Keys | None],
    *,
    within: int | None,
    last: int | None,
    how: str,
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
    operator = Joined(chosen, within, last, how, condition, (f"_a{number}", f"_b{number}"))
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


def _sum_type(given: str) -> str:
    if given in expressions.WHOLE:
        return "bigint"
    if given == "double":
        return given
    precision, scale = given.removeprefix("decimal(").removesuffix(")").split(",")
    return f"decimal({min(int(precision) + 10, 38)},{scale})"
