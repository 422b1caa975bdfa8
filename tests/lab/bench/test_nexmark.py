"""The queries of NEXMark: that each can be written, and that a difference between two answers shows."""

import random

import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import KernelRun
from penstock_lab.bench.nexmark import FULL, NexmarkSize, _differing, _standing, nexmark
from penstock_lab.bench.nexmark_queries import _ITEM, _OFFER, MISSING, QUERIES, SIDE, closed, looked_up
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


def test_what_stands_is_what_was_given_and_not_taken_back():
    found = pa.table({"change": ["insert", "insert", "retract", "update"], "a": [1, 2, 1, 3]})
    assert sorted(_standing(found)["a"].to_pylist()) == [2, 3]
    assert _standing(found.select(["a"])) == found.select(["a"])


def test_bids_are_looked_up_in_the_table_beside_the_streams():
    bids = pa.record_batch({"auction": [10_004, 7], "bidder": [1, 2], "price": [3, 4]})
    assert SIDE["value"][2].as_py() == "value 4"
    assert looked_up(bids)["value"].to_pylist() == ["value 4", None]


@pytest.mark.parametrize("seed", range(5))
def test_an_auction_closes_with_its_best_bid_however_epochs_are_cut(seed, tmp_path):
    rng = random.Random(seed)
    nothing = dict.fromkeys(["id", *_ITEM, *_OFFER])
    items = {}
    for number in range(8):
        begins = rng.randrange(60)
        items[number] = {"begins": begins, "expires": begins + rng.randrange(20), "extra": f"item {number}"}
    events = [{**nothing, "time": each["begins"], "id": place, **each} for place, each in items.items()]
    bids = [
        {"time": time, "id": rng.randrange(9), "price": rng.randrange(20), "bidder": place, "bid_time": time}
        for place, time in enumerate(rng.sample(range(90), 60))
    ]
    events += [{**nothing, **each} for each in bids]
    rng.shuffle(events)
    columns = ", ".join(f"{name} {kind}" for name, kind in (_ITEM | _OFFER).items())
    united = ps.stream("united", f"time timestamp, id bigint, {columns}", time="time")
    running = KernelRun(closed(united), tmp_path, channels=3, seed=seed, restless=True)
    running.run([[events[place::4]] for place in range(4)], delay=100)
    best = {}
    for each in sorted(bids, key=lambda bid: (-bid["price"], bid["time"])):
        item = items.get(each["id"], {"begins": 1, "expires": 0})
        if item["begins"] <= each["time"] <= item["expires"]:
            best.setdefault(each["id"], each)
    expected = [(items[place]["expires"] + 1, place, bid["bidder"]) for place, bid in best.items()]
    names = ["time", "id", *_ITEM, *_OFFER]
    found = [dict(zip(names, row, strict=True)) for row in running.results]
    assert sorted((each["time"], each["id"], each["bidder"]) for each in found) == sorted(expected)
    assert all(each["extra"] == f"item {each['id']}" for each in found)


@pytest.mark.parametrize(("name", "words"), [("q12", "windows by the clock"), ("q99", "give some of q0")])
def test_a_query_that_is_not_here_is_refused(name, words):
    with pytest.raises(BadBench, match=words):
        nexmark(NexmarkSize(queries=(name,)))


@pytest.mark.soak
def test_all_queries_give_what_spark_gives_in_batch():
    report = nexmark(NexmarkSize(events=20_000, files=4, files_per_epoch=2, repeats=1, queries=FULL.queries))
    assert [check.name for check in report.checks if not check.ok] == []
