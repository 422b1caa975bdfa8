"""Seeded bugs: every mutant is a program, a plain check finds one, and random programs find nine of ten."""

from random import Random

import pytest

from fuzz.mutations import ROOT, Covered, judged, mutants, soak, watched
from fuzz.mutations_judged import EQUIVALENT

KERNEL = "operators/counts/kernel.py"


def every_line(file):
    return set(range(1, 2 + len((ROOT / file).read_text().splitlines())))


@pytest.mark.parametrize(
    "file", [KERNEL, "compile/stages.py", "distribution/on_grid.py", "query/sql/clauses.py"]
)
def test_every_mutant_compiles_to_another_program(file):
    found = mutants(file, every_line(file))
    assert len(found) > 20
    for each in Random(1).sample(found, 20):
        assert each.code() != compile((ROOT / file).read_text(), str(ROOT / file), "exec"), each


def checked(_seed):
    """A program: windows of two rows, each with its sum."""
    import datetime as dt

    import penstock as ps
    from fuzz.local import run_local

    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    stream = ps.stream("t", "time timestamp, k string, n int", time="time")
    rows = [{"time": start + dt.timedelta(seconds=at), "k": "a", "n": 2**at} for at in range(6)]
    sums = stream.group_by("k").window(2, slide=2, rows=True).agg(total=ps.sum("n"))
    (found,) = run_local(sums, {"t": [rows[:3], rows[3:]]}, seed=1, channels=2).tables
    return "ok" if sorted(found["total"].to_pylist()) == [3, 12, 48] else "wrong"


def test_a_check_finds_mutants_of_what_it_executes():
    found = Random(2).sample(mutants(KERNEL, every_line(KERNEL)), 5)
    verdicts = [
        judged(each, Covered({}, {0: {(KERNEL, each.begins)}}, {0: "ok"}), 20, checked) for each in found
    ]
    assert {each.ran for each in verdicts} <= {0, 1}
    assert any(each.found for each in verdicts)


def test_the_product_itself_is_no_mutant():
    assert checked(0) == "ok"


def test_what_no_program_executes_is_not_found():
    (each, *_) = mutants(KERNEL, every_line(KERNEL))
    verdict = judged(each, Covered({}, {0: {("compile/stages.py", 1)}}, {0: "ok"}), 20, checked)
    assert (verdict.found, verdict.ran) == (False, 0)


@pytest.mark.soak
def test_nine_of_ten_seeded_bugs_are_found():
    verdicts = soak(seed=27, seen=watched(300), count=60, minutes=15)
    judging = [
        each
        for each in verdicts
        if (each.mutant.file, each.mutant.function, each.mutant.kind, each.mutant.before) not in EQUIVALENT
    ]
    survivors = [str(each.mutant) for each in judging if not each.found]
    assert len(survivors) <= len(judging) / 10, "\n".join(survivors)
