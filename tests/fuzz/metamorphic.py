"""Changes of a program that change nothing: each gives another program with the same results."""

import dataclasses
from collections.abc import Callable
from random import Random

from fuzz.program import (
    MARK,
    Block,
    Bound,
    Expr,
    Item,
    Join,
    Program,
    Table,
    Union,
    combined,
    relations_of,
    tables_of,
)
from fuzz.shrink import changed


def respelled(program: Program, rng: Random) -> Program:
    """Other aliases, qualifiers, letter case and quotes, sub-queries in WITH instead of FROM."""
    return dataclasses.replace(program, style=rng.randrange(1 << 30))


def parted(program: Program, rng: Random) -> Program | None:
    """The rows for which a condition is true, those for which it is false, and those for which it is null."""
    block = program.query
    if not isinstance(block, Block) or block.group is not None or not block.where or block.form != "sql":
        return None
    place = rng.randrange(len(block.where))
    rest = block.where[:place] + block.where[place + 1 :]
    whole = dataclasses.replace(block, where=rest)
    condition = block.where[place]
    truths = (
        condition,
        combined("NOT ({0})", "boolean", condition),
        combined("({0}) IS NULL", "boolean", condition),
    )
    parts = tuple(dataclasses.replace(whole, where=(*rest, each)) for each in truths)
    return dataclasses.replace(program, query=Union(parts)), dataclasses.replace(program, query=whole)


def rearranged(program: Program, rng: Random) -> Program:
    """The columns of every table in another order."""
    query = program.query
    for table in tables_of(query).values():
        order = rng.sample(range(len(table.columns)), len(table.columns))
        changes = {
            "columns": tuple(table.columns[each] for each in order),
            "rows": tuple(tuple(row[each] for each in order) for row in table.rows),
        }
        query = changed(query, table.name, changes)
    return dataclasses.replace(program, query=query)


def exchanged(program: Program, _rng: Random) -> Program | None:
    """A join of two tables with its sides exchanged."""
    block = program.query
    if not isinstance(block, Block) or len(block.joins) != 1 or block.first.window:
        return None
    (join,) = block.joins
    other = {"inner": "inner", "left": "right", "right": "left", "full": "full"}.get(join.how)
    if other is None or join.bound.kind not in {"interval", "within", "keep"} or join.using:
        return None
    bound = Bound(join.bound.kind, join.bound.ahead, join.bound.back, join.bound.by and join.item.id)
    keys = tuple((right, left) for left, right in join.keys)
    turned = Join(other, block.first, keys, bound, join.conditions)
    return dataclasses.replace(program, query=dataclasses.replace(block, first=join.item, joins=(turned,)))


def doubled(program: Program, rng: Random) -> Program | None:
    """A table cut into two, and UNION ALL of both where it stood; rows of both come in any order."""
    if any(
        each.group and "joined" in {one.name for _, one in each.group.aggregates} for each in _blocks(program)
    ):
        return None
    tables = tables_of(program.query)
    table = tables[rng.choice(sorted(tables))]
    names = [name for name in ("h1", "h2") if name not in tables]
    if len(names) < 2:
        return program
    chosen = [rng.random() < 0.5 for _ in table.rows]
    halves = [
        dataclasses.replace(
            table,
            name=name,
            rows=tuple(row for row, one in zip(table.rows, chosen, strict=True) if one == first),
        )
        for name, first in zip(names, (True, False), strict=True)
    ]
    both = Union(tuple(_all_of(each, f"h{place}") for place, each in enumerate(halves)))
    return dataclasses.replace(program, query=_replaced(program.query, table, both))


def _blocks(program: Program) -> list[Block]:
    return [each for each in relations_of(program.query) if isinstance(each, Block)]


def wrapped(program: Program, rng: Random) -> Program:
    """A sub-query of all columns where a table stood."""
    tables = tables_of(program.query)
    table = tables[rng.choice(sorted(tables))]
    return dataclasses.replace(program, query=_replaced(program.query, table, _all_of(table, "w")))


def renamed(program: Program, rng: Random) -> Program | None:
    """A column of a table under another name; results keep theirs."""
    if not all(isinstance(each, (Block, Table)) for each in relations_of(program.query)):
        return None
    tables = tables_of(program.query)
    table = tables[rng.choice(sorted(tables))]
    column = rng.choice(table.columns)
    name = "zz"
    items = _items(program.query)
    ids = {each.id for each in items if each.relation == table}

    def text(given: str) -> str:
        return MARK.sub(
            lambda each: f"«{each[1]}.{name}»" if each[1] in ids and each[2] == column.name else each[0],
            given,
        )

    def over(node):
        if isinstance(node, Expr):
            return node.map(text)
        if node == table:
            columns = tuple(
                dataclasses.replace(each, name=name) if each == column else each for each in table.columns
            )
            time = name if column.name == table.time else table.time
            key = name if column.name == table.key else table.key
            return dataclasses.replace(table, columns=columns, time=time, key=key)
        if isinstance(node, tuple):
            return tuple(over(each) for each in node)
        if dataclasses.is_dataclass(node) and not isinstance(node, Table):
            return dataclasses.replace(
                node, **{each.name: over(getattr(node, each.name)) for each in dataclasses.fields(node)}
            )
        return node

    return dataclasses.replace(program, query=over(program.query))


def _items(node: object) -> list[Item]:
    found = []
    if isinstance(node, Item):
        found.append(node)
    if isinstance(node, tuple):
        return [each for one in node for each in _items(one)]
    if dataclasses.is_dataclass(node) and not isinstance(node, (Table, Expr)):
        for field in dataclasses.fields(node):
            found += _items(getattr(node, field.name))
    return found


def _all_of(table: Table, mark: str) -> Block:
    item = Item(f"{mark}_{table.name}", table)
    select = tuple(
        (each.name, Expr(f"«{item.id}.{each.name}»", f"«{item.id}.{each.name}»", each.type, each.exact))
        for each in table.columns
    )
    return Block(item, (), (), (), None, select)


def _replaced(node: object, table: Table, instead: object) -> object:
    if node == table:
        return instead
    if isinstance(node, tuple):
        return tuple(_replaced(each, table, instead) for each in node)
    if dataclasses.is_dataclass(node) and not isinstance(node, (Table, Expr)):
        fields = {
            each.name: _replaced(getattr(node, each.name), table, instead)
            for each in dataclasses.fields(node)
        }
        return dataclasses.replace(node, **fields)
    return node


CHANGES: dict[str, Callable] = {
    "respelled": respelled,
    "parted": parted,
    "rearranged": rearranged,
    "exchanged": exchanged,
    "doubled": doubled,
    "wrapped": wrapped,
    "renamed": renamed,
}
