"""Deduplication: its words, and its channels over many epochs on real files against an oracle."""

import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from operators.deduplicate.case import ROW, WITHIN, build, oracle
from penstock.columns import HASH, TIME
from penstock.errors import BadDuration, BadName, UnknownColumn, WrongType
from penstock.operators.deduplicate.kernel import passing
from penstock.operators.kernel import Channel, Seen, StagePosition
from penstock.routing import Frequencies, Goal, first_router, next_router
from penstock.routing.spark_hash import spark_hash
from penstock.state import ChannelStore, KeyPlacing, Location, MoveTask, MovingStage, gathered

CLICKS = ps.stream("clicks", "time timestamp, id bigint, tags array<string>, price double", time="time")


class Running:
    """The channels of a kernel, epoch after epoch, with a router that may change between them."""

    def __init__(self, relation, folder, channels):
        types = {f"`{each.name}`": each.type for each in relation.schema.columns}
        described = [lambda texts: [(types[each], True) for each in texts]]
        self.kernel = relation.operator.compile("timestamp", described)
        self.folder, self.router = Location(str(folder)), first_router("uniform", channels)
        self.folder.make()
        self.state, self.position, self.epoch, self.results, self.latest = (
            ((),) * channels,
            StagePosition(),
            0,
            [],
            0,
        )
        self.accepted = []

    def run(self, epochs, delay, channels):
        """All epochs with a move before each, and the drain; the results in order."""
        for rows, count in zip(epochs, channels, strict=True):
            self.move(count)
            self.step(rows, delay)
        self.step([], delay, drained=self.latest + 1)
        return self.results

    def step(self, rows, delay, drained=None):
        bound = self.kernel.bound(self.position, 0)
        rows = [row for row in rows if bound is None or row["time"] >= bound]
        self.accepted += rows
        self.latest = max([self.latest, *(row["time"] for row in rows)])
        table = self.sent(rows)
        seen = Seen(rows=bool(rows), state=any(self.state))
        advance = self.kernel.advance(self.position, (self.latest - delay,), seen, drained)
        if not advance.idle:
            routes = self.router.route(table[HASH].to_numpy().view(np.uint64))
            self.state = tuple(
                self.channel(number, table.filter(pa.array(routes == number)), advance)
                for number in range(self.router.channels)
            )
        self.position, self.epoch = advance.position, self.epoch + 1

    def channel(self, number, own, advance):
        given = Channel(
            number=number,
            new=(own if own.num_rows else None,),
            form="rows",
            store=ChannelStore(self.folder, f"{self.epoch}-{number}", self.state[number]),
            before=self.position,
            after=advance.position,
            ended=advance.ended,
            emit=self.emit,
        )
        return self.kernel.step(given)

    def emit(self, table):
        assert table.schema.equals(self.kernel.schema)
        times = table[TIME].cast(pa.timestamp("us", "UTC"))
        assert table["time"].equals(times)
        assert table[TIME].to_pylist() == sorted(table[TIME].to_pylist())
        self.results += table.set_column(0, "time", table[TIME]).drop_columns([TIME]).to_pylist()

    def sent(self, rows):
        (exchange,) = self.kernel.exchanges
        names = [each.sql.strip("`").replace(TIME, "time") for each in exchange.columns]
        columns = [[row[name] for row in rows] for name in names]
        table = pa.table(columns, schema=exchange.schema)
        hashes = spark_hash([table[name] for name in exchange.keys], len(rows))
        return table.append_column(HASH, pa.array(hashes.view(np.int64)))

    def move(self, channels):
        none = Frequencies(np.zeros(0, np.uint64), np.zeros(0))
        after = next_router("uniform", self.router, none, channels, Goal(domain=1000))
        stage = MovingStage(self.kernel.tables, self.state, KeyPlacing(after.arrays))
        task = MoveTask(self.folder, f"moved-{self.epoch}", (stage,))
        departures = {channel: task.work(channel) for channel in range(self.router.channels)}
        (self.state,) = gathered(task, departures, channels)
        self.router = after

    def shown(self, place):
        """The rows of a table in all channels, as people see them."""
        table = self.kernel.tables[place]
        frontiers = self.position.frontiers
        found = [rows for each in self.state for rows in table.show(self.folder, each, frontiers)]
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
        expected, again = oracle(running.accepted, within, keys)
        assert content(found) == content(expected)
        (frontier,) = running.position.frontiers
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
    running.step([row | {"time": time} for time in (14, 5, 15, 9)], 0)
    assert [each["time"] for each in running.results] == [5]
    assert running.shown(0) == []  # 5 + 10 is where the frontier is: whatever comes passes
    (waiting,) = running.shown(1)
    assert (waiting["k"], waiting["_time"].microsecond) == (1, 15)
    for time, kept in ((24, [(1, 25)]), (25, [(2, 34)])):
        running.step([row | {"k": 2, "time": time}], 0)
        assert [(each["k"], each["_passes_again"].microsecond) for each in running.shown(0)] == kept
    assert [(each["k"], each["time"]) for each in running.results] == [(1, 5), (1, 15), (2, 24)]


def test_segments_and_state_stay_few(tmp_path):
    running = Running(build(25), tmp_path, 1)
    for epoch in range(80):
        rows = [{"k": key, "s": None, "d": None, "v": 0, "time": 10 * epoch} for key in (epoch, epoch // 2)]
        running.step(rows, 5)
        assert len(running.state[0]) <= 20
        assert len(running.shown(0)) <= 6
    assert sum(each.rows for each in running.state[0]) < 40


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
