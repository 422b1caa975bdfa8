"""Deduplication: its words, and its channels over many epochs on real files against an oracle."""

import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from operators.contract import KernelRun
from operators.deduplicate.case import ROW, WITHIN, build, oracle
from penstock.columns import TIME
from penstock.errors import BadDuration, BadName, UnknownColumn, WrongType
from penstock.operators.deduplicate.kernel import passing

CLICKS = ps.stream("clicks", "time timestamp, id bigint, tags array<string>, price double", time="time")


class Running(KernelRun):
    """The channels of a stage, whose number changes between epochs; its results are rows."""

    latest = 0

    def run(self, epochs, delay, channels):
        """All epochs with a move before each, and the drain; the results in order."""
        for rows, count in zip(epochs, channels, strict=True):
            self.move(channels=count)
            self.take(rows, delay)
        self.drain(self.latest + 1)
        return self.results

    def take(self, rows, delay):
        """The rows of one epoch."""
        in_time = self._in_time(0, rows)
        self.latest = max([self.latest, *(row["time"] for row in in_time)])
        self.step([rows], (self.latest - delay,))

    def tuples(self, table):
        assert table.schema.equals(self.kernel.schema)
        times = table[TIME].cast(pa.timestamp("us", "UTC"))
        assert table["time"].equals(times)
        assert table[TIME].to_pylist() == sorted(table[TIME].to_pylist())
        return table.set_column(0, "time", table[TIME]).drop_columns([TIME]).to_pylist()

    def shown(self, place):
        """The rows of a table in all channels, as people see them."""
        table, record = self.kernel.tables[place], self.record
        frontiers = record.position.frontiers
        found = [rows for each in record.channels for rows in table.show(self.segments, each, frontiers)]
        return [row for rows in found for row in table.named(rows).to_pylist()]


def content(rows):
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("keys", [("k",), ("s", "k"), ("d",)], ids="-".join)
@given(
    epochs=st.lists(st.lists(ROW, max_size=14), max_size=6),
    delay=st.integers(0, 60),
    within=WITHIN,
    channels=st.lists(st.integers(1, 4), min_size=7, max_size=7),
)
@settings(max_examples=40)
def test_what_passes_is_what_the_oracle_lets_pass(keys, epochs, delay, within, channels):
    with tempfile.TemporaryDirectory() as folder:
        running = Running(build(within, keys), folder, channels[0])
        found = running.run(epochs, delay, channels[: len(epochs)])
        expected, again = oracle(*running.accepted, within, keys)
        assert content(found) == content(expected)
        (frontier,) = running.record.position.frontiers
        kept = {key for key, time in again.items() if time > frontier}
        assert {tuple(row[name] for name in keys) for row in running.shown(0)} == kept
        assert running.shown(1) == []


@given(
    rows=st.lists(ROW, max_size=30),
    within=WITHIN,
    order=st.randoms(use_true_random=False),
    cuts=st.integers(1, 5),
)
@settings(max_examples=40)
def test_neither_arrival_nor_the_cut_into_epochs_decides(rows, within, order, cuts):
    shuffled = order.sample(rows, len(rows))
    epochs = [shuffled[start::cuts] for start in range(cuts)]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        found = Running(build(within), one, 1).run([rows], 200, [1])
        assert content(found) == content(Running(build(within), other, 2).run(epochs, 200, [2] * cuts))


def test_a_key_is_forgotten_when_the_frontier_has_passed_its_time(tmp_path):
    # within 10 us, key 1:  5 passes, 9 and 14 are dropped, 15 passes; the key is kept until 25
    running = Running(build(10), tmp_path, 1)
    row = {"k": 1, "s": None, "d": None, "v": None}
    running.take([row | {"time": time} for time in (14, 5, 15, 9)], 0)
    assert [each["time"] for each in running.results] == [5]
    assert running.shown(0) == []  # 5 + 10 is where the frontier is: whatever comes passes
    (waiting,) = running.shown(1)
    assert (waiting["k"], waiting["_time"].microsecond) == (1, 15)
    for time, kept in ((24, [(1, 25)]), (25, [(2, 34)])):
        running.take([row | {"k": 2, "time": time}], 0)
        assert [(each["k"], each["_passes_again"].microsecond) for each in running.shown(0)] == kept
    assert [(each["k"], each["time"]) for each in running.results] == [(1, 5), (1, 15), (2, 24)]


def test_segments_and_state_stay_few(tmp_path):
    running = Running(build(25), tmp_path, 1)
    for epoch in range(80):
        rows = [{"k": key, "s": None, "d": None, "v": 0, "time": 10 * epoch} for key in (epoch, epoch // 2)]
        running.take(rows, 5)
        assert len(running.record.channels[0]) <= 20
        assert len(running.shown(0)) <= 6
    assert sum(each.rows for each in running.record.channels[0]) < 40


@given(
    st.lists(st.lists(st.integers(0, 300), max_size=60).map(sorted), max_size=5),
    st.integers(1, 120),
    st.lists(st.integers(-5, 200), min_size=5, max_size=5),
)
def test_the_vectorised_rule_is_the_rule(keys, within, free):
    expected = []
    for own, start in zip(keys, free, strict=False):
        again = start
        for time in own:
            expected.append(time >= again)
            again = time + within if time >= again else again
    groups = np.repeat(np.arange(len(keys)), [len(own) for own in keys])
    times = np.array([time for own in keys for time in own], np.int64)
    assert passing(groups, times, np.array(free), within).tolist() == expected


def test_columns_and_time_stay_as_they_are():
    made = CLICKS.deduplicate("id", within="10 minutes")
    assert made.schema == CLICKS.schema
    assert made.time == "time"
    assert repr(made) == "clicks.deduplicate(id; within 10 minutes)"
    assert made.select("price").schema.names == ("price",)


def test_distance_keys_and_columns_are_its_meaning():
    made = CLICKS.deduplicate("id", within="10 minutes")
    assert made.fingerprint() == CLICKS.deduplicate("ID", within="600 s").fingerprint()
    others = [
        CLICKS.deduplicate("id", within="11 minutes"),
        CLICKS.deduplicate("id", "price", within="10 minutes"),
        CLICKS.select("time", "id").deduplicate("id", within="10 minutes"),
    ]
    assert len({each.fingerprint() for each in (made, *others)}) == 4


def test_only_conditions_on_keys_move_below_it():
    plan = CLICKS.deduplicate("id", within="1 hour").where("id > 3 and price > 2").explain()
    assert "condition `id` > 3 moved below deduplicate(id; within 1 hour) to its input clicks" in plan
    assert "where(`price` > 2)\n     └─ deduplicate" in plan


@pytest.mark.parametrize(
    ("keys", "within", "error", "message"),
    [
        ((), "1 s", BadName, "needs at least one key; name the columns"),
        (("id", "ID"), "1 s", BadName, "two columns would have the name 'id'"),
        (("nobody",), "1 s", UnknownColumn, "nobody"),
        (("tags",), "1 s", WrongType, "key 'tags' is array<string>"),
        (("id",), "0 s", BadDuration, "within='0 s'; give more than 0"),
        (("id",), "1 month", BadDuration, "no fixed length"),
    ],
)
def test_what_is_wrong_is_said_while_writing(keys, within, error, message):
    with pytest.raises(error, match=message):
        CLICKS.deduplicate(*keys, within=within)
