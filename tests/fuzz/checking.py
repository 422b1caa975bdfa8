"""A program held against its oracle and against itself: whole, cut into epochs, resumed."""

from random import Random

import pyarrow as pa

import penstock as ps
from fuzz import functions, oracle
from fuzz.compare import Different, assert_same, check_types, folded, plain_rows
from fuzz.local import NeedsSpark, run_local
from fuzz.program import Program, Table, tables_of
from fuzz.text import Unspeakable, program_text
from penstock.errors import QueryError

Epochs = dict[str, list[list[dict]]]


class Refused(Exception):
    """The product does not take the program; the message is its reason."""


class Crashed(Exception):
    """The product failed with what is no error of its own."""


def built(program: Program):
    """The relation of a program."""
    text = program_text(program)
    names = {"ps": ps, "functions": functions}
    try:
        exec(text, names)  # noqa: S102 -- the text is our own
    except QueryError as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    return names["query"]


def epochs_of(program: Program) -> Epochs:
    """The rows of every table, cut at random."""
    rng = Random(program.seed * 31 + program.epochs)
    return {name: cut(rng, each, program.epochs) for name, each in tables_of(program.query).items()}


def cut(rng: Random, table: Table, count: int) -> list[list[dict]]:
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    first = rng.randrange(count) if rng.random() < 0.2 else 0
    edges = [0, *sorted(rng.randint(0, len(rows)) for _ in range(count - first - 1)), len(rows)]
    parts = [rows[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    return [[] for _ in range(first)] + parts


def rows_of(program: Program, table: pa.Table) -> list[tuple]:
    columns = program.query.columns
    check_types(table, columns)
    if program.query.updating:
        return folded(table, columns)
    return plain_rows(table, columns)


WAYS = {
    "whole": {"whole": True},
    "cut": {},
    "resumed": {"resume": True},
}


def run(program: Program, relation, way: str):
    options = dict(WAYS[way])
    channels = 1 if way == "whole" else program.channels
    return run_local(relation, epochs_of(program), seed=program.seed, channels=channels, **options)


def check(program: Program, ways: tuple[str, ...] = ("whole", "cut", "resumed")) -> None:
    """Raise Different if anything is; Refused, Unspeakable and NeedsSpark are no differences."""
    relation = built(program)
    expected = oracle_rows(program)
    for way in ways:
        try:
            result = run(program, relation, way)
        except QueryError as error:
            raise Different(f"builds, and is refused when it runs: {type(error).__name__}: {error}") from error
        if any(result.late.values()):
            raise Different(f"{way}: rows are late within the delay: {result.late}")
        assert_same(rows_of(program, result.tables[0]), expected, program.query.columns, way)


def oracle_rows(program: Program) -> list[tuple]:
    found = oracle.evaluate(program.query)
    return plain_rows(found, program.query.columns)


__all__ = ["Crashed", "NeedsSpark", "Refused", "Unspeakable", "built", "check", "epochs_of"]
