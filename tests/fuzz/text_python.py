"""Blocks as verbs of Python; one of many spellings by the seed of the speller."""

import re
from typing import TYPE_CHECKING

from fuzz.program import MARK, SECOND, Block, Item, Join, Table, Window
from fuzz.text_names import BOUNDS, Unspeakable, backticks, escaped, variable

if TYPE_CHECKING:
    from fuzz.text import Speller

NAMES_IN_PYTHON = {
    "count(*)": "count",
    "var_samp": "var",
    "stddev_samp": "stddev",
}


def python_block(  # noqa: C901, PLR0912 -- a line for each clause
    speller: "Speller", block: Block
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
        arguments += [each.python] if each.python else []
        function = "functions.Joined" if function == "joined" else f"ps.{function}"
        aggregates.append(f"a{place}={function}({', '.join(arguments)})")
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


def filtered(speller: "Speller", condition: str) -> str:
    """A where(), or the part of a split() that says the same."""
    if speller.chance(0.75):
        return f".where({condition!r})"
    if speller.chance(0.5):
        return f".split({condition!r}, '1 = 1')[0]"
    return f".split('1 = 0', {condition!r})[1]"


def projected(speller: "Speller", columns: dict[str, tuple[str, str]]) -> str:
    """A select(), or a map() that gives columns other names."""
    renamed = {name: text[1:-1] for name, (text, _) in columns.items() if re.fullmatch(r"`[^`]+`", text)}
    if (
        len(renamed) < len(columns)
        or any(name == column for name, column in renamed.items())
        or speller.chance(0.6)
    ):
        return chosen({name: text for name, (text, _) in columns.items()})
    return mapped(speller, renamed, {name: kind for name, (_, kind) in columns.items()})


def mapped(speller: "Speller", renamed: dict[str, str], types: dict[str, str]) -> str:
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
    speller: "Speller", left: str, join: Join, number: int, names: dict[tuple[str, str], str], block: Block
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


def window_verb(speller: "Speller", window: Window, *, revising: bool = False) -> str:
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


def splittable(block: Block) -> bool:
    """Whether it is one condition over a table."""
    plain = not block.joins and not block.subs and block.group is None and len(block.where) == 1
    return plain and isinstance(block.first.relation, Table) and block.first.window is None


def split_text(speller: "Speller", block: Block) -> str:
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
