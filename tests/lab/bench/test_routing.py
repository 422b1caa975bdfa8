import numpy as np

from penstock_lab.bench.routing import routing, zipf_hashes
from penstock_lab.bench.timing import best_seconds


def test_a_report_has_every_case_and_a_check_for_each_floor():
    report = routing(items=20_000, repeats=1)
    cases = [row["case"] for row in report.rows]
    assert any("table of 4,096" in case and "ring of 16,384" in case for case in cases)
    assert [check.name for check in report.checks[:2]] == [
        "route, hashes a second",
        "lossy counting, items a second",
    ]
    timed = [check.name for check in report.checks[2:]]
    assert all(name.endswith("seconds") for name in timed)
    assert {name.split(",")[0] for name in timed} >= {"scan", "redist", "readj"}


def test_the_hottest_keys_are_most_of_the_stream():
    _, counts = np.unique(zipf_hashes(200_000, seed=1), return_counts=True)
    assert 0.55 < np.sort(counts)[-4096:].sum() / 200_000 < 0.75


def test_the_best_run_counts():
    now, took = 0, iter([1, 5, 3, 4])

    def work():
        nonlocal now
        now += next(took)

    # The first run, which is the shortest, only warms.
    assert best_seconds(work, repeats=3, clock=lambda: now) == 3
