"""What the channels of a map measure, with clocks that a test moves, and that rows keep their order."""

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import described
from penstock.columns import TIME
from penstock.operators.cost_meter import CostMeter
from penstock.operators.kernel import Channel, StagePosition
from penstock.routing.spark_hash import spark_hash

ROWS = ps.stream("rows", "time timestamp, code bigint", time="time")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def stepped(function, codes, *, refuse=None, by="code"):
    """What a channel makes of rows, and what it has learnt."""
    relation = ROWS.map(function, "code bigint, size bigint", by=by, channels=True)
    kernel = relation.operator.compile("timestamp", [described(ROWS.schema)])
    times = np.arange(len(codes))
    table = pa.table({"time": pa.array(times, pa.timestamp("us", "UTC")), "code": codes, TIME: times})
    hashes = spark_hash([table["code"]], len(codes)).view(np.int64)
    meter, made = CostMeter(CLOCK, CLOCK), []
    position, view = StagePosition(), (by,) if by else ()
    kernel.step(
        Channel(
            0, (table,), "rows", None, position, position, False, made.append, refuse, meter=meter, view=view
        )
    )
    (found,) = made
    return found, meter.costs() or meter.row_costs(), hashes.view(np.uint64)


CLOCK = Clock()


def working(batch):
    """A call costs 10, and a row what its code says."""
    CLOCK.now += 10 + sum(batch["code"].to_pylist())
    sizes = [batch.num_rows] * batch.num_rows
    return pa.record_batch({"code": batch["code"], "size": pa.array(sizes, pa.int64())})


def test_a_sample_tells_what_each_value_costs_without_the_cost_of_a_call():
    # A row costs up to 1,600, a call 10: all rows but those of the pilot may be sampled.
    codes = 200 * np.random.default_rng(7).integers(1, 9, 256)
    _, costs, hashes = stepped(working, codes)
    assert costs.rows.total == 256 - 32
    assert costs.means.means(hashes) == pytest.approx(codes.astype(float))


def test_rows_keep_their_order_and_their_times():
    codes = np.random.default_rng(8).integers(1, 9, 9000)
    found, _, _ = stepped(working, codes)
    assert found["code"].to_pylist() == codes.tolist()
    assert found[TIME].to_pylist() == list(range(9000))
    assert found["time"].cast(pa.int64()).to_pylist() == list(range(9000))


def test_samples_take_a_small_part_of_the_time():
    # 9,000 rows that cost 1 each, all of one value or each of another: 45 calls of 10 are 5 % of 9,000.
    for codes in (np.ones(9000, np.int64), np.arange(9000) % 3):
        _, costs, _ = stepped(working, codes)
        assert 8 < costs.rows.total <= 60
    # Rows that cost nothing: few are sampled, and only calls are seen.
    _, costs, _ = stepped(working, np.zeros(9000, np.int64))
    assert costs.rows.total == 8


def test_few_rows_are_measured_too():
    for count in (1, 5, 31):
        _, costs, hashes = stepped(working, np.full(count, 700))
        assert costs.means.means(hashes[:1]) == pytest.approx([700])


def test_a_function_that_takes_no_empty_batch_is_measured_all_the_same():
    def picky(batch):
        assert batch.num_rows
        return working(batch)

    assert stepped(picky, [5])[0].num_rows == 1
    codes = np.full(256, 5)
    _, costs, hashes = stepped(picky, codes)
    assert costs.means.means(hashes[:1]) == pytest.approx([5 + 10 / 224])


def test_a_refused_row_leaves_the_others_in_order():
    def picky(batch):
        if 3 in batch["code"].to_pylist():
            raise ValueError("three")
        return working(batch)

    refused = []
    found, _, _ = stepped(picky, [5, 3, 4, 5, 3], refuse=lambda *told: refused.append(told))
    assert found["code"].to_pylist() == [5, 4, 5]
    assert len(refused) == 2


def test_without_known_columns_single_rows_are_measured():
    codes = 200 * np.random.default_rng(9).integers(1, 9, 256)
    found, costs, hashes = stepped(working, codes, by=())
    assert found["code"].to_pylist() == codes.tolist()
    assert costs.hashes.shape == (256 - 32, 1)
    code_of = dict(zip(hashes.tolist(), codes.tolist(), strict=True))
    assert costs.wall.tolist() == [code_of[each] for each in costs.hashes[:, 0].tolist()]
