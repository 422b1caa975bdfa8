"""A program held against its oracles and against itself: whole, cut into epochs, resumed, and changed."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import pyarrow as pa

import penstock as ps
from fuzz import functions, oracle
from fuzz.compare import Different, assert_same, check_types, folded, plain_rows
from fuzz.local import NeedsSpark, run_local
from fuzz.metamorphic import CHANGES
from fuzz.oracle import OracleFailed
from fuzz.program import MARK, Block, Column, Expr, Program, Relation, Table, Verb, relations_of, tables_of
from fuzz.shrink import changed
from fuzz.text import Unspeakable, program_text
from penstock.errors import QueryError

T = TypeVar("T")
Epochs = dict[str, list[list[dict]]]
WAYS = {"whole": {"whole": True}, "cut": {}, "resumed": {"resume": True}}


CHECKS = ("whole", "cut", "cut", "cut", "resumed", "resumed", "resumed", "changed", "changed", "late")
"""What a program is held against is drawn: the oracle, a change that changes nothing, or one channel.

One of them each: in the same time more programs find more than more ways to run one.
"""


def rng_of(program: Program) -> Random:
    return Random(program.seed * 7 + 1)


def strategy_of(program: Program) -> str:
    """How the query is cut into stages; mostly the usual one."""
    return Random(program.seed + 2).choices(["subquery", "operator", "query"], [4, 1, 1])[0]


def on_error_of(program: Program) -> str:
    """What becomes of rows for which a function raises."""
    picky = any(
        isinstance(each, Verb) and each.kind in {"picky", "fussy"} for each in relations_of(program.query)
    )
    return "set aside" if picky or program.seed % 3 == 0 else "fail"


class Refused(Exception):  # noqa: N818 -- it is an answer, not a fault
    """The product does not take the program; the message is its reason."""


class RefusedLate(Refused):
    """The product takes the program and refuses it when it runs."""


@contextmanager
def refusing_late() -> Iterator[None]:
    """What is refused here is refused when it starts."""
    try:
        yield
    except QueryError as error:
        raise RefusedLate(f"{type(error).__name__}: {error}") from error


def built(program: Program) -> Any:
    """The relation of a program."""
    names = {"ps": ps, "functions": functions}
    try:
        exec(program_text(program), names)
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
    parts = [rows[a:b] for a, b in pairwise(edges)]
    return [[] for _ in range(first)] + parts


def rows_of(columns: tuple[Column, ...], table: pa.Table) -> list[tuple]:
    check_types(table, columns)
    if "change" in table.column_names and "change" not in {each.name for each in columns}:
        return folded(table, columns)
    return plain_rows(table, columns)


def oracle_rows(program: Program) -> list[tuple]:
    return plain_rows(oracle.evaluate(program.query, program.zone), program.query.columns)


@dataclass
class Judge:
    """Runs programs without Spark, or on it, in these ways."""

    ways: tuple[str, ...] | None = None
    change: bool = True
    session: Any = None

    @classmethod
    def on_spark(cls) -> "Judge":
        from fuzz.on_spark import fast_session

        return cls(("resumed",), change=False, session=fast_session())

    def verbatim(self, seed: int) -> bool | None:
        """A third of the programs; on Spark the text of more of them is Spark's own oracle."""
        return None if self.session is None else seed % 3 > 0

    def each(self, function: Callable[[int], T], seeds: Iterable[int]) -> Iterator[T]:
        """The function of each seed in order; on Spark several at once."""
        if self.session is None:
            return map(function, seeds)
        from fuzz.on_spark import each_on_spark

        return each_on_spark(function, seeds)

    def run(self, program: Program, relation: Any, way: str) -> Any:
        channels = 1 if way == "whole" else program.channels
        given = {"seed": program.seed, "channels": channels, "zone": program.zone, **WAYS[way]}
        given |= {"strategy": strategy_of(program), "on_error": on_error_of(program)}
        if self.session is None:
            return run_local(relation, epochs_of(program), **given)
        from fuzz.on_spark import run_on_spark

        return run_on_spark(relation, epochs_of(program), session=self.session, **given)

    def check(self, program: Program) -> None:
        """Raise Different if anything is; Refused, Unspeakable and NeedsSpark are no differences."""
        relation = built(program)
        chosen = rng_of(program).choice(CHECKS)
        if self.change and chosen == "changed" and self._check_changed(program):
            return
        if self.change and chosen == "late":
            self._check_late(program)
            return
        expected = oracle_rows(program)
        for way in self.ways or (chosen if chosen in WAYS else "cut",):
            self._compare(program, relation, way, expected, way)
        if self.session is not None and program.verbatim:
            self._check_spark(program, expected)

    def _compare(
        self,
        program: Program,
        relation: Any,
        way: str,
        expected: list[tuple],
        what: str,
        columns: tuple[Column, ...] | None = None,
    ) -> None:
        with refusing_late():
            result = self.run(program, relation, way)
        if any(result.late.values()):
            raise Different(f"{way}: rows are late within the delay: {result.late}")
        columns = columns or program.query.columns
        # The event time passes a map unasked.
        kept = {"change", relation.time, *relation.pinned}
        wanted = {each.lower() for each in (*kept, *(each.name for each in columns))}
        if more := {*map(str.lower, result.tables[0].column_names)} - wanted:
            raise Different(f"{way}: columns that nobody has asked for: {more}")
        assert_same(rows_of(columns, result.tables[0]), expected, columns, what)

    def _check_changed(self, program: Program) -> bool:
        """One of the changes that change nothing, drawn from the seed; whether there is one that fits."""
        rng = Random(program.seed + 1)
        name = rng.choice(list(CHANGES))
        found = CHANGES[name](program, rng)
        if found is None:
            return False
        changed, meant = found if isinstance(found, tuple) else (found, program)
        expected = oracle_rows(meant)
        try:
            relation = built(changed)
        except (Refused, Unspeakable):
            return False
        try:
            self._compare(changed, relation, "cut", expected, name, meant.query.columns)
        except NeedsSpark:
            return False
        return True

    def _check_late(self, program: Program) -> None:
        """Streams without a delay: the same rows are late in any channels, and the others give the result."""
        query = program.query
        for table in tables_of(query).values():
            query = changed(query, table.name, {"delay": 0})
        hasty = dataclasses.replace(program, query=query)
        relation, epochs = built(hasty), epochs_of(hasty)
        given = {"seed": program.seed, "zone": program.zone, "on_error": on_error_of(program)}
        with refusing_late():
            found = run_local(relation, epochs, channels=program.channels, **given)
            plain = run_local(relation, epochs, channels=1, rescale=False, **given)
        columns = program.query.columns
        if _ids(found.late) != _ids(plain.late):
            raise Different("late: other rows are late in other channels")
        assert_same(rows_of(columns, found.tables[0]), rows_of(columns, plain.tables[0]), columns, "late")
        tables = [each for each in relations_of(query) if isinstance(each, Table)]
        nested = len(list(relations_of(query))) > 1 + len(tables)
        if nested or len(tables) > len(tables_of(query)) or not found.clean or not any(found.late.values()):
            # A row that feeds two ports may be late in one of them alone.
            return
        for name, table in tables_of(query).items():
            rows = tuple(tuple(row[each] for each in table.names) for row in found.accepted[name])
            query = changed(query, name, {"rows": rows})
        expected = oracle_rows(dataclasses.replace(program, query=query))
        assert_same(rows_of(columns, found.tables[0]), expected, columns, "accepted")

    def _check_spark(self, program: Program, expected: list[tuple]) -> None:
        """The DuckDB oracle against Spark's own answer to the same text."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        from fuzz.oracle_spark import evaluate_on_spark

        block = program.query
        if isinstance(block, Block) and block.group is not None and not block.group.keys and not expected:
            # SQL has one row for a group of nothing; a stream has none before its first tuple.
            return
        shown = defined_on_spark(block)
        if shown is None:
            return
        try:
            found = evaluate_on_spark(self.session, program)
        except (PySparkException, Py4JJavaError) as error:
            # Errors while it runs are not PySpark's; some plans of sub-queries over their own table have one.
            raise OracleFailed(f"Spark: {error}") from error
        columns = program.query.columns
        given = map(shown, plain_rows(found, columns))
        assert_same(list(given), list(map(shown, expected)), columns, "Spark")

    def outcome(self, program: Program) -> tuple[str, str]:  # noqa: PLR0911 -- a line for each
        """A word for what became of a program, and a reason."""
        try:
            self.check(program)
        except RefusedLate as reason:
            return "refused late", str(reason).split("\n")[0][:60]
        except Refused as reason:
            return "refused", str(reason).split("\n")[0][:60]
        except NeedsSpark as reason:
            return "needs Spark", str(reason)[:24]
        except Unspeakable as reason:
            return "unspeakable", str(reason)[:40]
        except OracleFailed as reason:
            return "oracle failed", str(reason)[:60]
        except Exception as error:  # noqa: BLE001 -- any error is a failure of the product
            return "failed", f"{type(error).__name__}: {error}"[:200]
        return "same", ""

    def error(self, program: Program) -> Exception | None:
        """What is wrong with a program; None if nothing is, or if it says nothing."""
        try:
            self.check(program)
        except (Refused, NeedsSpark, Unspeakable, OracleFailed):
            return None
        except Exception as error:  # noqa: BLE001 -- as above
            return error
        return None


def check(program: Program) -> None:
    Judge().check(program)


LISTS = {"array_agg", "collect_list"}
"""Spark collects values in the order in which a shuffle brings them."""
ANY = {"mode", "first", "last", "max_by", "min_by"}
"""Of several values Spark takes any; first and last go by the order of rows, nulls among them."""


def defined_on_spark(query: Relation) -> Callable[[tuple], tuple] | None:
    """What Spark defines of a row: lists as bags, no value that may be any; None if such values go on."""

    def undefined(each: Relation) -> dict[str, str]:
        made = each.group.aggregates if isinstance(each, Block) and each.group else ()
        return {name: one.name for name, one in made if one.name in LISTS | ANY}

    open_, (_, *inner) = undefined(query), relations_of(query)
    if any(map(undefined, inner)):
        return None
    if not open_:
        return lambda row: row

    def read(each: Expr) -> set[str]:
        return {open_[mark[2]] for mark in MARK.finditer(each.spark) if mark[2] in open_}

    if any(map(read, query.group.having)):
        return None
    kinds = [read(each) for _, each in query.select]

    def shown(row: tuple) -> tuple:
        return tuple(
            value if not kind else tuple(sorted(value)) if kind <= LISTS else None
            for value, kind in zip(row, kinds, strict=True)
        )

    return shown


def _ids(rows: dict[str, list[Any]]) -> dict[str, list[int]]:
    """Rows by identity: equal ones may be late for different reasons."""
    return {name: sorted(map(id, each)) for name, each in rows.items() if each}
