"""The queries of NEXMark: that each can be written, and that a difference between two answers shows."""

import pyarrow as pa
import pytest

import penstock as ps
from penstock_lab.bench.nexmark import FULL, NexmarkSize, _differing, nexmark
from penstock_lab.bench.nexmark_queries import MISSING, QUERIES
from penstock_lab.errors import BadBench
from penstock_lab.workloads.nexmark import AUCTION, BID, PERSON

STREAMS = {
    name: ps.stream(name, ddl, time="date_time", delay="4 seconds")
    for name, ddl in {"person": PERSON, "auction": AUCTION, "bid": BID}.items()
}


def test_every_query_is_here_or_told_with_the_reason():
    assert sorted([*QUERIES, *MISSING], key=lambda name: int(name[1:])) == [f"q{each}" for each in range(23)]


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_reads_the_streams_that_it_names(name):
    query = QUERIES[name]
    assert {each.name for each in ps.Query((query.penstock(STREAMS),)).streams} == set(query.reads)


def test_rows_that_only_one_side_has_are_counted_as_often_as_they_are_there():
    one, other = pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 2, 3]})
    assert _differing(one, other) == 2
    assert _differing(one, one) == 0


@pytest.mark.parametrize(("name", "words"), [("q11", "needs session windows"), ("q99", "give some of q0")])
def test_a_query_that_is_not_here_is_refused(name, words):
    with pytest.raises(BadBench, match=words):
        nexmark(NexmarkSize(queries=(name,)))


@pytest.mark.soak
def test_all_queries_give_what_spark_gives_in_batch():
    report = nexmark(NexmarkSize(events=20_000, files=4, files_per_epoch=2, repeats=1, queries=FULL.queries))
    assert [check.name for check in report.checks if not check.ok] == []
