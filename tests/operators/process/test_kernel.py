"""What only keyed functions do in channels: arrival order, equal hashes, forgotten keys, wrong answers."""

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import KernelRun
from penstock.errors import BadProcess
from penstock.runtime.dataflow import ports
from penstock.state.compaction import MOST_SEGMENTS
from processes import Running, Sessions, relation, visit_session

SESSION = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}


def row(time, **columns):
    return {"k": None, "s": None, "d": None, "v": 1, "wait": 0} | columns | {"time": time}


def test_zeros_and_nans_are_one_key_each(tmp_path):
    process = relation(visit_session, keys=("d",), timeout="1 second", **SESSION)
    rows = [row(1, d=d) for d in (0.0, -0.0, float("nan"), float("nan"), None, None)]
    found = KernelRun(process, tmp_path, 2).run([[rows[:3]], [rows[3:]]], 0)
    assert [each[2] for each in found] == [2, 2, 2]


def test_keys_of_one_hash_are_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "spark_hash", lambda keys, _: keys[0].to_numpy().astype(np.uint64) % 2)
    process = relation(Sessions(), timeout="50 us", **SESSION)
    epochs = [[[row(10 * epoch + k, k=k, v=k) for k in range(9)]] for epoch in range(4)]
    found = KernelRun(process, tmp_path).run(epochs, 9)
    assert sorted(found) == [(30 + k + 50, k, 4, 4 * k) for k in range(9)]


def test_a_forgotten_key_leaves_nothing_behind_and_segments_stay_few(tmp_path):
    run = KernelRun(relation(Sessions(), timeout="5 us", **SESSION), tmp_path)
    for epoch in range(60):
        run.step([[row(10 * epoch, k=epoch)]], (10 * epoch,))
        assert len(run.record.channels[0]) <= 2 * MOST_SEGMENTS + 2
    assert sum(each.rows for each in run.record.channels[0]) < 40
    assert len(run.results) == 59


def test_by_arrival_rows_are_given_at_once(tmp_path):
    run = KernelRun(relation(Running(), order="arrival", **SESSION), tmp_path)
    run.step([[row(9, k=1, v=5)]], (0,))
    run.step([[row(4, k=1, v=7), row(2, k=1, v=1)]], (0,))
    assert sorted(run.results) == [(2, 1, 2, 6), (4, 1, 3, 13), (9, 1, 1, 5)]
    assert {each.table for each in run.record.channels[0]} == {"state"}


def test_a_timeout_by_arrival_goes_by_the_latest_row(tmp_path):
    run = KernelRun(relation(visit_session, order="arrival", timeout="10 us", **SESSION), tmp_path)
    run.step([[row(20, k=1, v=5)]], (5,))
    run.step([[row(8, k=1, v=7)]], (29,))
    assert run.results == []
    run.step([[]], (30,))
    assert run.results == [(30, 1, 2, 12)]


class Wrong(ps.Processor):
    def __init__(self, **outcome):
        self.outcome = outcome

    def step(self, _block):
        return ps.Outcome(**self.outcome) if self.outcome else None


NUMBERS = pa.table({"n": [1], "total": [2]})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Wrong(), "returned NoneType; return a ps.Outcome"),
        (Wrong(state=NUMBERS.slice(0, 0)), "state has 0 entries; give one for each key, 1"),
        (Wrong(state=pa.table({"n": [1]})), "state has no column 'total'; declared are n, total"),
        (Wrong(results=NUMBERS), "at has 0 entries; give one for each result, 1"),
        (Wrong(results=NUMBERS, at=[3]), "numbers outside 0 to 0"),
        (Wrong(keep=[True, False]), "keep has 2 entries"),
        (Wrong(results=pa.table({"n": ["x"], "total": [1]}), at=[0]), "cannot be held as declared"),
        (lambda *_: 3, "returned int; return a ps.Visit"),
        (lambda *_: ps.Visit({"m": 1}), "'m', which is not declared; the columns are n, total"),
        (lambda *_: ps.Visit({"n": "x"}), "cannot be held as declared"),
    ],
)
def test_a_wrong_answer_is_named(function, message, tmp_path):
    with pytest.raises(BadProcess, match=message):
        KernelRun(relation(function, **SESSION), tmp_path).run([[[row(1, k=1)]]], 0)


def test_a_timer_that_sets_itself_is_refused(tmp_path):
    class Loop(ps.Processor):
        def step(self, block):
            return ps.Outcome(timers=block.times)

    with pytest.raises(BadProcess, match="a timer that fires at 1 sets the next one at 1"):
        KernelRun(relation(Loop(), **SESSION), tmp_path).run([[[row(1, k=1)]]], 0)
