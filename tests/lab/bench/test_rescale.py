import inspect

import numpy as np
import pyarrow.parquet as pq
import pytest

from penstock.query import MOST_MOVED, Query
from penstock_lab.bench.keyed_payloads import KeyedPayloads, payloads
from penstock_lab.bench.rescale import ONE_STEP, SPARK, STEPS, rescale
from penstock_lab.bench.standstill import gaps, standstill

TINY = KeyedPayloads(1, seed=3, fill_rows=5000, epoch_rows=500, steady=2)


def test_a_standstill_is_what_the_epochs_of_the_change_took_more():
    #      steady       change        after
    ends = [0, 1, 2, 3, 5, 6, 6.5, 9, 10.5]
    took = gaps(ends)
    found = standstill(took[:3], took[3:7], took[7:])
    assert (found.whole_s, found.longest_s) == (1 + 0 + 0 + 1.5, 1.5)
    assert (found.steady_s, found.steady_after_s) == (1, 1.5)


def test_every_key_comes_once_while_the_state_is_filled(tmp_path):
    files = TINY.write(tmp_path / "in")
    assert len(files) == TINY.before + TINY.after
    fill = np.concatenate(
        [pq.read_table(file)["key"].to_numpy() for file in files[: -TINY.after - TINY.steady]]
    )
    assert sorted(fill) == list(range(TINY.keys))
    assert pq.read_metadata(files[-1]).num_rows == TINY.small == 500


def test_the_time_of_rows_never_goes_back(tmp_path):
    files = TINY.write(tmp_path / "in")
    times = np.concatenate([pq.read_table(file)["time"].to_numpy() for file in files])
    assert (np.diff(times) > np.timedelta64(0)).all()


def test_a_key_has_one_payload_and_no_two_have_the_same():
    keys = np.arange(2000)
    drawn = payloads(keys).to_pylist()
    assert payloads(keys[::-1]).to_pylist() == drawn[::-1]
    assert len(set(drawn)) == len(keys)
    assert {len(each) for each in drawn} == {100}


def test_a_gigabyte_moves_by_the_default_bound_and_less_in_proportion():
    assert inspect.signature(Query.start).parameters["most_moved"].default == MOST_MOVED
    assert KeyedPayloads(1024, seed=1).step == MOST_MOVED
    assert KeyedPayloads(32, seed=1).step == MOST_MOVED // 32


@pytest.mark.soak
def test_every_way_is_measured_and_keeps_the_same_state(spark):
    report = rescale(data=TINY, only=("spark",))
    rows = {row["engine"]: row for row in report.rows}
    assert list(rows) == [STEPS, ONE_STEP, SPARK]
    assert rows[STEPS]["epochs"] > rows[ONE_STEP]["epochs"] == 1
    assert 0.5 < rows[STEPS]["moved_over_ideal"] < 2
    assert [check.floor for check in report.checks if "over" in check.name] == [10]
    assert [check.name for check in report.checks if not check.ok and "over" not in check.name] == []
