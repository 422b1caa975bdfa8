import pytest

import penstock as ps
from penstock_lab.linear_road import (
    Traffic,
    Truth,
    linear_road,
    position_reports,
    report_windows,
    segment_statistics,
)
from penstock_lab.linear_road.validator import ANSWERS

TRAFFIC = Traffic(seconds=480, begin=5400, most=800, accidents=120, seed=5)


def epochs(table, count):
    size = -(-table.num_rows // count)
    return [table.slice(number * size, size) for number in range(count)]


@pytest.fixture(scope="module")
def truth():
    with Truth(TRAFFIC.reports, TRAFFIC.history) as truth:
        yield truth


def test_all_answers_are_those_of_batch_sql(spark, truth):
    road = linear_road(ps.rows(epochs(TRAFFIC.reports, 2)), ps.rows([TRAFFIC.history]))
    sinks = {name: ps.memory() for name in ANSWERS}
    road.query.start(*sinks.values(), session=spark, channels=2).wait()
    verdicts = [truth.verdict(name, sink.table()) for name, sink in sinks.items()]
    assert [each for each in verdicts if not each.ok] == []
    assert all(each.expected > 50 for each in verdicts)


def test_statistics_and_windows_without_a_key_are_those_of_batch_sql(spark, truth):
    reports = position_reports(ps.rows(epochs(TRAFFIC.reports, 2)))
    queries = segment_statistics(reports), report_windows(reports, "100 seconds", "10 seconds")
    by_segment, without_key = ps.memory(), ps.memory()
    ps.outputs(*queries).start(by_segment, without_key, session=spark, channels=2).wait()
    assert truth.wrong_statistics(by_segment.table()) == 0
    assert truth.wrong_windows(without_key.table(), "100 seconds", "10 seconds") == 0
    assert by_segment.table().num_rows > 1000
    assert without_key.table().num_rows > 50


def test_the_plan_names_every_function():
    road = linear_road(ps.rows(epochs(TRAFFIC.reports, 1)), ps.rows([TRAFFIC.history]))
    plan = road.query.explain(channels=2)
    for name in ("Vehicles", "accident", "Segments", "Balances", "Expenditures"):
        assert f"process({name}" in plan
