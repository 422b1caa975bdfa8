"""The comparison with other engines: what is reported of given runs, and a small form of the whole."""

import dataclasses
import sys
from pathlib import Path

import pytest

from penstock_lab.bench.batch_engines import has_polars
from penstock_lab.bench.cost import Cost
from penstock_lab.bench.data import START_US, DataSet
from penstock_lab.bench.joins import JoinSize
from penstock_lab.bench.peer_cases import CASES, EpochSize, Files
from penstock_lab.bench.peer_report import Run, agreement, case_row, epoch_goals, goals
from penstock_lab.bench.peers import PeerSize, _engines, peers
from penstock_lab.bench.results import Delivered
from penstock_lab.bench.timing import Rounds
from penstock_lab.errors import BadBench

TINY = PeerSize(
    DataSet(rows=4_000, seconds=80, keys=20, seed=7, rows_per_file=1_000),
    JoinSize(calls=1_000, seconds=80, calls_per_file=250, files_per_epoch=1),
    epoch_rows=(2_000, 4_000),
    small=EpochSize(600, warm=1, counted=1),
    sweep=(EpochSize(200, warm=2, counted=2), EpochSize(400, warm=1, counted=1)),
    spark_most=200,
    rounds=Rounds(1, warm=False, unjudged="a few rows"),
)
BY_NAME = {case.option: case for case in CASES}
RIGHT, WRONG = Delivered(10, 7), Delivered(10, 8)


def run(rows, cpu_s, wall_s=1.0, got=RIGHT):
    files = Files((Path("somewhere"),), rows, 1_000, 100)
    return Run(files, Cost(wall_s, cpu_s, 100.0), 10, got, RIGHT)


def test_goals_go_by_medians_and_by_rows():
    runs = {
        "penstock": [run(1000, 3.0), run(1000, 2.0), run(1000, 9.0)],
        "duckdb": [run(1000, 1.0)],
        # A half of the rows.
        "spark": [run(500, 12.0, wall_s=3.0)],
    }
    found = {check.name: check for check in goals(BY_NAME["60-by-10"], "x", 0, runs, "")}
    assert [(check.value, check.floor, check.ceiling, check.source) for check in found.values()] == [
        (3.0, None, 3, "goal"),
        (6.0, 5.5, None, "goal"),
        (8.0, 5.5, None, "goal"),
    ]
    (larger,) = goals(BY_NAME["60-by-10"], "x", 1, runs, "")
    assert (larger.ceiling, larger.ok) == (2, False)


def test_processor_seconds_are_stated_for_ten_million_rows():
    (check,) = goals(BY_NAME["100-by-1"], "x", 0, {"penstock": [run(1_000_000, 2.0)]}, "")
    assert (check.value, check.ceiling) == (20.0, 22)


def test_every_goal_is_a_bound():
    bounds = {case.option: (case.over_duckdb, case.over_spark, case.cpu_s) for case in CASES}
    assert bounds == {
        "filter": ((8, 5), 1.5, None),
        "tumbling": ((5, 3), 4, None),
        "60-by-10": ((3, 2), 5.5, None),
        "100-by-1": ((), None, 22),
        "join": ((4, 3), 9, None),
    }
    ceilings = [check.ceiling for check in epoch_goals(TINY.small, [run(300, 0.2, wall_s=0.1)], "")]
    assert ceilings == [0.16, 0.3]


def test_one_wrong_round_of_one_engine_is_seen():
    runs = {"penstock": [run(1000, 1.0), run(1000, 1.0, got=WRONG)], "spark": [run(1000, 1.0)]}
    assert [(check.value, check.ok) for check in agreement("x", runs)] == [(10, True), (1, False), (0, True)]


def test_an_engine_that_got_fewer_rows_says_so():
    whole = Files((Path("somewhere"),), 1000, 100, 100)
    row = case_row("x", BY_NAME["join"], "spark", whole, 5_000, [run(500, 1.0)])
    assert row["note"] == "the first 500 of 1,000 rows; compared per row"
    assert (row["rows"], row["epoch_rows"], row["rows_per_s"]) == (500, 500, 500)


def test_a_part_of_the_files_has_its_rows_and_its_time(tmp_path):
    files = Files.of_calls(TINY.calls, tmp_path, seed=1)
    half = files.first(0.5)
    assert (files.rows, half.rows) == (2_000, 1_000)
    assert [len(list(each.iterdir())) for each in half.folders] == [2, 2]
    assert half.settled_us == START_US + 38_000_000
    assert (files.each_epoch(1_000), files.each_epoch(1)) == (2, 1)
    assert files.first(1.0) is files


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"only": ["filter", "sorting"]}, "--only has 'sorting'; give some of filter"),
        ({"engines": ["flink"]}, "--engines has 'flink'; give some of penstock"),
    ],
)
def test_a_part_or_an_engine_that_is_not_here_is_refused(given, words):
    with pytest.raises(BadBench, match=words):
        peers(TINY, **given)


def test_polars_that_is_not_installed_is_refused_by_name_and_else_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)  # as Python marks a module that cannot be imported
    with pytest.raises(BadBench, match="pip install polars"):
        peers(TINY, engines=["polars"])
    assert _engines(None) == ("penstock", "spark", "duckdb")


def test_a_case_and_small_epochs_on_all_engines(spark):
    size = dataclasses.replace(TINY, epoch_rows=(2_000,))
    report = peers(size, only=["filter", "small-epochs"])
    engines = ["penstock", "spark", "duckdb", *(["polars"] if has_polars() else [])]
    assert [row["engine"] for row in report.rows] == [*engines, "penstock", "spark"]
    assert all(row["rows_out"] > 0 for row in report.rows)
    assert {check.ok for check in report.checks} == {True, None}
    assert report.status == 0


@pytest.mark.soak
def test_all_engines_agree_in_every_case(spark):
    report = peers(TINY)
    assert [check.name for check in report.checks if check.ok is False] == []
    assert sum(check.source == "goal" for check in report.checks) == 4 * 4 + 1 + 2
    sections = list(dict.fromkeys(row["section"] for row in report.rows))
    assert [name.split(",")[0] for name in sections] == [
        "epochs of 2",
        "epochs of 4",
        "60 s by 10 s",
        "60 s by 10 s",
    ]
    sweep = [(row["engine"], row["epoch_rows"]) for row in report.rows if row["section"] == sections[-1]]
    assert sweep == [("penstock", 200), ("spark", 200), ("penstock", 400)]
