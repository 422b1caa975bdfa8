"""What programs have in them, for a table of what was covered."""

import dataclasses
from collections import Counter
from collections.abc import Iterator

from fuzz.program import (
    Aggregate,
    Block,
    Expr,
    Grouping,
    Join,
    Program,
    Ranked,
    Sub,
    Table,
    Union,
    Verb,
    Window,
)


def features(program: Program) -> set[str]:
    """Names such as `join left interval` and `type of key tinyint`."""
    return {"verbatim" if program.verbatim else "own syntax", *_features(program.query, 0)}


def _features(node: object, depth: int) -> Iterator[str]:  # noqa: C901, PLR0912 -- a case for each class
    match node:
        case Table():
            yield from (f"column {each.type}" for each in node.columns)
            return
        case Block():
            yield f"block {node.form}"
            yield f"joins {len(node.joins)}"
            if depth:
                yield "nested block"
            yield from ["where"] if node.where else []
            if len({id(each.relation) for each in node.items}) < len(node.items):
                yield "self join"
            depth += 1
        case Join():
            yield f"join {node.how} {node.bound.kind}"
            yield "join by expression" if any(one.spark[0] != "«" for one, _ in node.keys) else "join"
            yield from (f"join key {one.type}" for one, _ in node.keys)
            yield from ["join condition"] if node.conditions else []
            yield from ["join using"] if node.using else []
            yield from ["join cross"] if not node.keys else []
        case Sub():
            yield f"{node.kind} {node.bound.kind}"
            yield from (f"sub key {one.type}" for one, _ in node.keys)
        case Union():
            yield "union"
        case Ranked():
            yield "rank" if node.ties else "row_number"
        case Verb():
            yield f"verb {node.kind}"
        case Window():
            yield f"window {node.kind}"
        case Grouping():
            yield "totals" if node.window is None else "group by window"
            yield from ["grouping sets"] if node.sets is not None else []
            yield from ["having"] if node.having else []
            yield from ["rollup with the window"] if node.rolled else []
            yield from ["no aggregate"] if not node.aggregates else []
            yield from ["no key"] if not node.keys else []
            yield from (f"group key {each.type}" for _, each in node.keys)
        case Aggregate():
            yield f"aggregate {node.name}"
            yield from (f"aggregate over {each.type}" for each in node.arguments)
            yield from ["filter"] if node.where is not None else []
            yield from ["aggregate distinct"] if node.distinct else []
        case Expr():
            yield from (f"function {each}" for each in node.tags)
            return
        case tuple():
            for each in node:
                yield from _features(each, depth)
            return
    if dataclasses.is_dataclass(node):
        for field in dataclasses.fields(node):
            yield from _features(getattr(node, field.name), depth)


def table(counts: Counter) -> str:
    """Counts as lines, a group of features a line."""
    groups: dict[str, list[str]] = {}
    for name, count in sorted(counts.items()):
        group, _, rest = name.partition(" ")
        groups.setdefault(group, []).append(f"{rest or name} {count}")
    return "\n".join(f"{group}: {', '.join(each)}" for group, each in groups.items())
