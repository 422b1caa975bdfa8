"""A failing program made small: parts are left out as long as it fails in the same way.

It knows nothing of queries: what can be left out of a tuple is, what can be None is, a relation becomes one
of its inputs, a number becomes smaller. A candidate that cannot be written or evaluated is no failure.
"""

import dataclasses
from collections.abc import Callable, Iterator

from fuzz.program import Block, Expr, Item, Program, Relation, Table, Union, inputs_of, tables_of

PLAIN = Expr("1 = 1", "1 = 1", "boolean")


def shrunk(program: Program, fails: Callable[[Program], bool], most: int = 600) -> Program:
    """The smallest program found with so many tries."""
    left = [most]

    def still(candidate: Program) -> bool:
        if left[0] <= 0:
            return False
        left[0] -= 1
        return fails(candidate)

    while left[0] > 0:
        found = _fewer_rows(program, still)
        found = _smaller(found, still)
        if found == program:
            return found
        program = found
    return program


def _smaller(program: Program, still: Callable[[Program], bool]) -> Program:
    progress = True
    while progress:
        progress = False
        for candidate in candidates(program):
            if still(candidate):
                program, progress = candidate, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    for query in variants(program.query):
        yield dataclasses.replace(program, query=query)
    if program.epochs > 1:
        yield dataclasses.replace(program, epochs=1)
        yield dataclasses.replace(program, epochs=program.epochs - 1)
    if program.channels > 1:
        yield dataclasses.replace(program, channels=1)
        yield dataclasses.replace(program, channels=program.channels // 2)
    for style in (1, 2, 3):
        if style < program.style:
            yield dataclasses.replace(program, style=style)


def variants(node: object) -> Iterator[object]:
    """The same tree with one thing less, the largest things first."""
    if isinstance(node, (Block, Union)):
        yield from inputs_of(node)
    if isinstance(node, Table) or not dataclasses.is_dataclass(node):
        return
    if isinstance(node, Expr):
        if node.type == "boolean" and node.spark != PLAIN.spark and not node.spark.startswith("«g."):
            yield PLAIN
        return
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        for smaller in _values(field.name, value):
            yield dataclasses.replace(node, **{field.name: smaller})


def _values(name: str, value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        least = {"parts": 2, "select": 1, "order": 1, "columns": 1, "options": len(value), "inputs": 1}.get(
            name, 0
        )
        for place in range(len(value) if len(value) > least else 0):
            yield value[:place] + value[place + 1 :]
        for place, each in enumerate(value):
            if isinstance(each, tuple):
                for at, inner in enumerate(each):
                    for smaller in variants(inner):
                        pair = (*each[:at], smaller, *each[at + 1 :])
                        yield (*value[:place], pair, *value[place + 1 :])
            for smaller in variants(each):
                yield (*value[:place], smaller, *value[place + 1 :])
        return
    if dataclasses.is_dataclass(value):
        if name in {"group", "window", "sets", "where", "having"}:
            yield None
        yield from variants(value)


def _fewer_rows(program: Program, still: Callable[[Program], bool]) -> Program:
    for name in tables_of(program.query):
        step = max(1, len(tables_of(program.query)[name].rows) // 2)
        while step:
            start = 0
            while start < len(rows := tables_of(program.query)[name].rows):
                candidate = with_table(program, name, rows=rows[:start] + rows[start + step :])
                if still(candidate):
                    program = candidate
                else:
                    start += step
            step //= 2
    for name in tables_of(program.query):
        for column in tables_of(program.query)[name].columns:
            table = tables_of(program.query)[name]
            if column.name in {table.time, table.key} or len(table.columns) < 2:
                continue
            place = table.names.index(column.name)
            candidate = with_table(
                program,
                name,
                columns=table.columns[:place] + table.columns[place + 1 :],
                rows=tuple(row[:place] + row[place + 1 :] for row in table.rows),
            )
            if still(candidate):
                program = candidate
    return program


def with_table(program: Program, name: str, **changes: object) -> Program:
    return dataclasses.replace(program, query=changed(program.query, name, changes))


def changed(node: object, name: str, changes: dict[str, object]) -> object:
    """The tree with a table changed wherever it stands."""
    if isinstance(node, Table):
        return dataclasses.replace(node, **changes) if node.name == name else node
    if isinstance(node, tuple):
        return tuple(changed(each, name, changes) for each in node)
    if isinstance(node, (Item, *Relation.__args__)) or dataclasses.is_dataclass(node):
        if isinstance(node, Expr):
            return node
        fields = {
            each.name: changed(getattr(node, each.name), name, changes) for each in dataclasses.fields(node)
        }
        return dataclasses.replace(node, **fields)
    return node
