"""The channel kernel of keyed functions over many epochs, on real files, against a batch engine."""

import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.compile import HASH
from penstock.errors import BadProcess
from penstock.keyed import newest
from penstock.runtime.compaction import MOST_SEGMENTS
from penstock.runtime.segments import read
from processes import (
    Channels,
    Running,
    Sessions,
    Waiting,
    accepted,
    relation,
    visit_session,
    waiting_oracle,
)

ROW = st.fixed_dictionaries(
    {
        "time": st.integers(0, 120),
        "k": st.one_of(st.none(), st.integers(0, 4)),
        "s": st.sampled_from(["a", "b", None]),
        "d": st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
        "v": st.integers(0, 9),
        "wait": st.integers(0, 30),
    }
)
EPOCHS = st.lists(st.lists(ROW, max_size=12), max_size=6)
SESSION = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}


def batch(rows, sql):
    table = pa.Table.from_pylist(
        rows, schema=pa.schema([(n, pa.int64()) for n in ("time", "k", "v")] + [("s", pa.string())])
    )
    with duckdb.connect() as engine:
        engine.register("t", table)
        return sorted(engine.execute(sql).fetchall(), key=repr)


def sessions_oracle(rows, gap, keys="k"):
    """Sessions end `gap` after their last row; the next one begins with a row at that time or after it."""
    return batch(
        rows,
        f"""WITH marked AS (
                SELECT *, coalesce(time - lag(time) OVER w >= {gap}, true) AS begins
                FROM t WINDOW w AS (PARTITION BY {keys} ORDER BY time)
            ), numbered AS (
                SELECT *, sum(begins::int) OVER w AS session
                FROM marked WINDOW w AS (PARTITION BY {keys} ORDER BY time RANGE UNBOUNDED PRECEDING)
            )
            SELECT {keys}, max(time) + {gap}, count(*), sum(v)::bigint
            FROM numbered GROUP BY {keys}, session""",
    )


@pytest.mark.parametrize("function", [Sessions(), visit_session], ids=["arrow", "visits"])
@given(epochs=EPOCHS, delay=st.integers(0, 60), channels=st.integers(1, 3), gap=st.integers(1, 40))
@settings(max_examples=8)
def test_sessions_are_those_of_a_batch_engine_however_epochs_are_cut(function, epochs, delay, channels, gap):
    process = relation(function, timeout=f"{gap} us", **SESSION)
    with tempfile.TemporaryDirectory() as folder:
        found = Channels(process, folder, channels).run(epochs, delay)
    assert found == sessions_oracle(accepted(epochs, delay)[0], gap)


@given(epochs=EPOCHS, delay=st.integers(0, 60))
@settings(max_examples=8)
def test_running_statistics_of_several_keys_in_event_order(epochs, delay):
    process = relation(Running(), keys=("s", "k"), **SESSION)
    with tempfile.TemporaryDirectory() as folder:
        found = Channels(process, folder, 2).run(epochs, delay)
    rows, _ = accepted(epochs, delay)
    # Rows of one time come by their content: d and wait are not in the sums, v is.
    expected = batch(
        rows,
        """SELECT s, k, time, row_number() OVER w, NULL FROM t
           WINDOW w AS (PARTITION BY s, k ORDER BY time)""",
    )
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    totals = batch(rows, "SELECT s, k, sum(v)::bigint FROM t GROUP BY s, k")
    last = {row[:2]: row[4] for row in sorted(found, key=lambda each: each[3])}
    assert sorted(((*key, total) for key, total in last.items()), key=repr) == totals


@given(epochs=EPOCHS, delay=st.integers(0, 60), cut=st.integers(1, 5))
@settings(max_examples=8)
def test_rows_of_one_time_come_in_an_order_that_arrival_does_not_change(epochs, delay, cut):
    process = relation(Running(), **SESSION)
    rows, _ = accepted(epochs, delay)
    backwards = [rows[::-1][start::cut] for start in range(cut)]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        assert Channels(process, one).run([rows], 0) == Channels(process, other, 2).run(backwards, 200)


@given(epochs=EPOCHS, delay=st.integers(0, 60), channels=st.integers(1, 2))
@settings(max_examples=15)
def test_timers_that_a_processor_sets_fire_in_event_order(epochs, delay, channels):
    # No two rows of one time, since the oracle has no order for them.
    times = [row["time"] for epoch in epochs for row in epoch]
    kept, fresh = [], set(times)
    for epoch in epochs:
        kept.append([row | {"wait": row["wait"] + 1} for row in epoch if row["time"] in fresh])
        kept[-1] = list({row["time"]: row for row in kept[-1]}.values())
        fresh -= {row["time"] for row in epoch}
    process = relation(Waiting(), state={"n": "bigint", "fired": "boolean"}, result="n bigint")
    with tempfile.TemporaryDirectory() as folder:
        found = Channels(process, folder, channels).run(kept, delay)
    assert found == waiting_oracle(accepted(kept, delay)[0], max(times, default=0) + 1)


def test_zeros_and_nans_are_one_key_each(tmp_path):
    process = relation(visit_session, keys=("d",), timeout="1 second", **SESSION)
    rows = [{"time": 1, "d": d, "v": 1} for d in (0.0, -0.0, float("nan"), float("nan"), None, None)]

    class Plain(Channels):
        def hashed(self, key):
            return hash(str(key[0] + 0.0)) if key[0] is not None else 42  # as Spark: one hash for both zeros

    found = Plain(process, tmp_path).run([rows[:3], rows[3:]], 0)
    assert sorted(row[2] for row in found) == [2, 2, 2]


def test_keys_of_one_hash_are_kept_apart(tmp_path):
    class Alike(Channels):
        def hashed(self, key):
            return int(key[0]) % 2

    process = relation(Sessions(), timeout="50 us", **SESSION)
    epochs = [[{"time": 10 * e + k, "k": k, "v": k} for k in range(9)] for e in range(4)]
    rows, _ = accepted(epochs, 3)
    assert Alike(process, tmp_path).run(epochs, 3) == sessions_oracle([row | {"s": None} for row in rows], 50)


def test_state_stays_right_over_sixty_epochs_of_compactions(tmp_path):
    rng = np.random.default_rng(7)
    epochs = [
        [
            {"time": 20 * e + int(t), "k": int(k), "v": int(v), "s": None}
            for t, k, v in zip(*rng.integers([[0], [0], [0]], [[30], [40], [9]], (3, 12)), strict=True)
        ]
        for e in range(60)
    ]
    channels = Channels(relation(Sessions(), timeout="90 us", **SESSION), tmp_path, 2)
    found = channels.run(epochs, 5)
    rows, _ = accepted(epochs, 5)
    assert found == sessions_oracle(rows, 90)
    assert len(rows) < 720  # some are late
    kept = [read(channels.segments, each) for state in channels.state for each in state]
    last = newest(kept, HASH, ["_ps_key0"]) if kept else channels.plan.kept.empty_table()
    assert not any(last["_ps_known"].to_pylist())


def test_a_forgotten_key_leaves_nothing_behind_and_segments_stay_few(tmp_path):
    channels = Channels(relation(Sessions(), timeout="5 us", **SESSION), tmp_path)
    for epoch in range(60):
        channels.step([{"time": 10 * epoch, "k": epoch, "v": 1}], 10 * epoch)
        assert len(channels.state[0]) <= 2 * MOST_SEGMENTS + 2
    assert sum(each.rows for each in channels.state[0]) < 40
    assert len(channels.tuples()) == 59


def test_by_arrival_rows_are_given_at_once(tmp_path):
    process = relation(Running(), order="arrival", **SESSION)
    channels = Channels(process, tmp_path)
    channels.step([{"time": 9, "k": 1, "v": 5}], 0)
    channels.step([{"time": 4, "k": 1, "v": 7}, {"time": 2, "k": 1, "v": 1}], 0)
    assert channels.tuples() == [(1, 2, 2, 6), (1, 4, 3, 13), (1, 9, 1, 5)]
    assert {each.part for each in channels.state[0]} == {"state"}


def test_a_timeout_by_arrival_goes_by_the_latest_row(tmp_path):
    process = relation(visit_session, order="arrival", timeout="10 us", **SESSION)
    channels = Channels(process, tmp_path)
    channels.step([{"time": 20, "k": 1, "v": 5}], 5)
    channels.step([{"time": 8, "k": 1, "v": 7}], 29)
    assert channels.tuples() == []
    channels.step([], 30)
    assert channels.tuples() == [(1, 30, 2, 12)]


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
        (Wrong(results=NUMBERS, at=[3]), "numbers outside of 0 to 0"),
        (Wrong(keep=[True, False]), "keep has 2 entries"),
        (Wrong(results=pa.table({"n": ["x"], "total": [1]}), at=[0]), "cannot be held as declared"),
        (lambda *_: 3, "returned int; return a ps.Visit"),
        (lambda *_: ps.Visit({"m": 1}), "'m', which is not declared; the columns are n, total"),
        (lambda *_: ps.Visit({"n": "x"}), "cannot be held as declared"),
    ],
)
def test_a_wrong_answer_is_named(function, message, tmp_path):
    with pytest.raises(BadProcess, match=message):
        Channels(relation(function, **SESSION), tmp_path).run([[{"time": 1, "k": 1, "v": 1}]], 0)


def test_a_timer_that_sets_itself_is_refused(tmp_path):
    class Loop(ps.Processor):
        def step(self, block):
            return ps.Outcome(timers=block.times)

    with pytest.raises(BadProcess, match="a timer that fires at 1 sets the next one at 1"):
        Channels(relation(Loop(), **SESSION), tmp_path).run([[{"time": 1, "k": 1, "v": 1}]], 0)
