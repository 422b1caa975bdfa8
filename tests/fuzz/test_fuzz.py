"""Random programs give what DuckDB and Spark give, however rows are cut and queries are spelled."""

import dataclasses
import os
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from fuzz.checking import Judge, Refused, built, oracle_rows
from fuzz.compare import assert_same, plain_rows
from fuzz.coverage import features
from fuzz.draw_queries import draw
from fuzz.draw_values import MICRO, START
from fuzz.program import (
    SECOND,
    Aggregate,
    Block,
    Bound,
    Column,
    Expr,
    Grouping,
    Item,
    Join,
    Program,
    Sub,
    Table,
    Window,
    column_of,
    relations_of,
    tables_of,
)
from fuzz.reporting import report
from fuzz.shrink import shrunk
from fuzz.soak import soak
from fuzz.text import program_text

FRESH = random.SystemRandom().randrange(10**6, 10**9)
MOST_REFUSED = 0.25
MOST_EMPTY = 0.2
SLICE = 260
"""Programs without Spark in every run of the tests: about a minute."""


@cache
def drawn(seed: int) -> Program:
    """The program of a seed; to draw one takes an answer of the oracle."""
    return draw(seed)


def judged(judge: Judge, seeds) -> Counter:
    """Judge programs; a failure is made small and shown."""
    outcomes: Counter = Counter()
    for seed in seeds:
        program = drawn(seed) if judge.session is None else draw(seed, verbatim=judge.verbatim(seed))
        outcome, reason = judge.outcome(program)
        outcomes[outcome] += 1
        assert outcome != "failed", f"{reason}\n{report(program, judge)}"
    return outcomes


@pytest.mark.parametrize("first", [0, pytest.param(FRESH, marks=pytest.mark.soak)], ids=["known", "fresh"])
def test_programs_without_spark(first):
    print("seed", first)  # noqa: T201 -- a failure shows it
    outcomes = judged(Judge(), range(first, first + SLICE))
    assert outcomes["same"]
    assert not outcomes["oracle failed"]


def test_programs_on_spark(spark):
    assert judged(Judge.on_spark(), [5, 6, 7, 8])


def table(name, *rows):
    columns = (Column("time", "timestamp"), Column("k", "int"))
    return Table(
        name, columns, "time", 20 * SECOND, tuple((START + at * SECOND * MICRO, k) for at, k in rows)
    )


LEFT, RIGHT = table("l", (1, 1), (2, 2), (3, 1), (9, 2)), table("r", (2, 1), (4, 1), (5, 3), (8, 2))
ONE, TWO, THREE = Item("f1", LEFT), Item("f2", RIGHT), Item("f3", RIGHT)


def key_of(item):
    return column_of(item, Column("k", "int"))


def same_key(how, item, bound):
    return Join(how, item, ((key_of(ONE), key_of(item)),), bound)


def test_a_semi_join_before_the_last_rows():
    near, last = Bound("within", SECOND, SECOND), Bound("last", 0, 1)
    joins = (same_key("semi", TWO, near), same_key("inner", THREE, last))
    time = column_of(THREE, Column("time", "timestamp"))
    block = Block(ONE, joins, (), (), None, (("k", key_of(ONE)), ("at", time)))
    assert oracle_rows(Program(block, 1, 2, 2))
    for seed in range(5):
        Judge(("cut",), change=False).check(Program(block, seed, 2, 2))


def test_windows_by_another_time_than_that_of_an_in():
    count = Aggregate("count(*)", "count(*)", "count(*)", "bigint", True, ())
    group = Grouping((), (("n", count),), Window("tumble", 4 * SECOND), by="f2")
    near = Bound("within", 3 * SECOND, 3 * SECOND)
    inside = Sub("in", THREE, ((key_of(TWO), key_of(THREE)),), Bound("within", SECOND, SECOND))
    block = Block(ONE, (same_key("inner", TWO, near),), (), (inside,), group, GIVEN)
    assert oracle_rows(Program(block, 1, 2, 2))
    for seed in range(5):
        Judge(("cut",), change=False).check(Program(block, seed, 2, 2))


def marked(name, kind):
    return Expr(f"«g.{name}»", f"«g.{name}»", kind)


GIVEN = tuple(
    (name, marked(name, kind))
    for name, kind in (("window_start", "timestamp"), ("window_end", "timestamp"), ("n", "bigint"))
)


def test_the_same_seed_draws_the_same_program():
    assert draw(11) == draw(11)
    assert program_text(draw(11)) == program_text(draw(11))


def test_most_programs_are_taken():
    outcomes = Counter()
    for seed in range(60):
        try:
            built(drawn(seed))
            outcomes["taken"] += 1
        except Refused:
            outcomes["refused"] += 1
    assert outcomes["refused"] < MOST_REFUSED * 60, outcomes


KINDS = """
    block sql, block python, nested block, where, having, filter, aggregate distinct, totals, group by
    window, no key, grouping sets, no aggregate, window tumble, window hop, window session, window cumulate,
    join inner interval, join left interval, join right interval, join full interval, join semi interval,
    join anti interval, join inner within, join inner keep, join inner last, join cross, join condition,
    joins 2, joins 3, self join, union, row_number, rank, exists interval, not exists interval, in interval,
    not in interval, exists within, verb deduplicate, verb counts, verb process, verb silent, verb alarm,
    verb explode, verb picky, verb fussy, function guarded, verbatim, own syntax, aggregate first, aggregate
    last, aggregate joined, aggregate mode, aggregate median, aggregate max_by, aggregate array_agg,
    aggregate sum, aggregate avg, aggregate percentile, aggregate covar_pop
"""
TYPES = """
    tinyint, smallint, int, bigint, float, double, decimal(9;2), string, binary, boolean, date, timestamp,
    timestamp_ntz
"""


def listed(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split(",")]


def test_everything_is_drawn():
    seen = Counter(each for seed in range(2 * SLICE) for each in features(drawn(seed)))
    wanted = listed(KINDS)
    for kind in listed(TYPES):
        name = kind.replace(";", ",")
        wanted += [f"column {name}", f"group key {name}", f"join key {name}"]
    wanted += ["column array<int>", "column struct<a:int,b:string>"]
    rare = {each: seen[each] for each in wanted if not seen[each]}
    assert not rare


def test_most_programs_have_rows():
    empty = sum(not oracle_rows(drawn(seed)) for seed in range(100))
    assert empty < MOST_EMPTY * 100


def test_the_oracles_agree(spark):
    """Spark's answer to the very text is DuckDB's to the tree."""
    from pyspark.errors import PySparkException

    from fuzz.oracle import OracleFailed
    from fuzz.oracle_spark import evaluate_on_spark

    agreed = 0
    for seed in range(40, 48):
        program = draw(seed, verbatim=True)
        block = program.query
        expected = oracle_rows(program)
        if isinstance(block, Block) and block.group is not None and not block.group.keys and not expected:
            continue
        try:
            found = evaluate_on_spark(spark, program)
        except (PySparkException, OracleFailed):
            continue
        assert_same(plain_rows(found, block.columns), expected, block.columns, f"seed {seed}")
        agreed += 1
    assert agreed > 4


def test_the_oracles_agree_on_sessions_below_an_extreme(spark):
    """Spark's optimizer would drop a grouping that has no aggregate, and with it what merges sessions."""
    from fuzz.oracle_spark import evaluate_on_spark

    sessions = Grouping((), (), Window("session", 4 * SECOND), by="f1")
    inner = Block(ONE, (), (), (), sessions, GIVEN[:2])
    item = Item("f4", inner)
    start = column_of(item, Column("window_start", "timestamp"))
    least = Aggregate("min", "min({0})", "min({0})", "timestamp", True, (start,))
    group = Grouping((), (("a", least),), Window("tumble", SECOND), by="f4")
    block = Block(item, (), (), (), group, (("a", marked("a", "timestamp")),))
    program = Program(block, 1, 2, 2, verbatim=True)
    expected = oracle_rows(program)
    assert len(expected) == 2
    found = plain_rows(evaluate_on_spark(spark, program), block.columns)
    assert_same(found, expected, block.columns, "Spark")
    Judge(("cut",), change=False).check(program)


def test_a_failure_is_made_small():
    """Whatever has a join and a row with a null is called a failure here."""

    def fails(program: Program) -> bool:
        try:
            program_text(program)
            oracle_rows(program)
        except Exception:  # noqa: BLE001 -- it cannot be written
            return False
        joins = any(isinstance(each, Block) and each.joins for each in relations_of(program.query))
        return joins and any(None in row for table in tables_of(program.query).values() for row in table.rows)

    program = next(each for each in map(draw, range(200)) if fails(each))
    small = shrunk(program, fails)
    (row,) = [row for table in tables_of(small.query).values() for row in table.rows]
    assert len(row) <= 3
    assert small.epochs == small.channels == 1
    (block,) = [each for each in relations_of(small.query) if isinstance(each, Block)]
    assert len(block.joins) == 1
    assert len(program_text(small)) < len(program_text(program))


def test_a_wrong_result_is_found():
    """A product that loses a row: the judge says so, and the report can be run."""

    class Losing(Judge):
        def run(self, program, relation, way):
            result = super().run(program, relation, way)
            return dataclasses.replace(result, tables=[each.slice(1) for each in result.tables])

    judge = Losing(("whole",), change=False)
    for seed in range(100):
        if judge.outcome(draw(seed))[0] == "failed":
            break
    text = report(draw(seed), judge, most=60)
    assert f"seed {seed}" in text
    names: dict = {}
    exec(text, names)
    assert "query" in names


@pytest.mark.soak
@pytest.mark.parametrize("spark_too", [False, True], ids=["local", "spark"])
def test_soak(spark_too, tmp_path):
    """Seeds from FUZZ_FIRST on, FUZZ_COUNT of them; with FUZZ_RECORD a soak goes on where it stopped."""
    first = int(os.environ.get("FUZZ_FIRST", FRESH))
    count = int(os.environ.get("FUZZ_COUNT", "1500" if spark_too else "20000"))
    folder = Path(os.environ.get("FUZZ_RECORD", tmp_path))
    judge = Judge.on_spark() if spark_too else Judge()
    found = soak(first, count, judge, folder / f"{'spark' if spark_too else 'local'}-{first}.jsonl")
    print(found)  # noqa: T201
    assert not found.failed
