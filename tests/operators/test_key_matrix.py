"""Every type of key in every operator that has keys, rescaled in every epoch over 1, 2, 3 and 8 channels.

Kernels run without Spark. What an operator gives is compared with an oracle in plain Python that knows keys
in canonical form only. The state of a key is in one channel, and all spellings of a key have one hash.
"""

import zlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import KernelRun, added_up
from operators.key_operators import JOINS, OPERATORS, PAYLOAD
from operators.key_types import COMPARED, KEY_TYPES, REFUSED, canonical, packed
from penstock.errors import BadProcess, QueryError, WrongType
from penstock.operators import Operator
from penstock.operators.channelled_step import ChannelledStep
from penstock.operators.exchange import TIME
from penstock.routing.spark_hash import spark_hash
from penstock.state.segments import read

CHANNELS = (1, 8, 2, 3)
# Epochs overlap by as much time, in microseconds, and have as many rows in each port.
WIDTH = 20


def streams_of(*types):
    return [
        ps.stream(
            name,
            ", ".join(["time timestamp", *(f"k{n} {each}" for n, each in enumerate(sql)), PAYLOAD]),
            time="time",
        )
        for name, sql in zip("lr", types, strict=False)
    ]


def drawn(operator, types, rng, schedule):
    """Rows of every epoch and port: `key` is a place among the values of the key type.

    The schedule has for each epoch the places from which its keys are drawn, at each port.
    """
    serial, epochs = 0, []
    held = [each.in_python for each in types]
    for epoch, chosen in enumerate(schedule):
        ports = []
        for port in range(operator.ports):
            rows = []
            # Each epoch overlaps with the next one, and no two rows of a port have one time.
            start = WIDTH * epoch
            for time in rng.permutation(np.arange(start + epoch % 2, start + 2 * WIDTH, 2)).tolist():
                place = int(rng.choice(chosen[port]))
                if operator.in_python and place not in held[port]:
                    place = int(held[port][0])
                rows.append({"time": time, "key": place, "n": int(rng.integers(9)), "wait": 1 + serial % 7})
                rows[-1] |= {"v": serial, "k": types[port].keys[place]}
                serial += 1
            ports.append(rows)
        epochs.append(ports)
    return epochs


@dataclass
class KeyedRun(KernelRun):
    """A stage over rows whose keys are given as places among Arrow values, with their bits."""

    operator: object = None
    types: tuple = ()
    hashes_of: dict = field(default_factory=dict)

    def source(self, port, rows):
        """Keys are taken from the values, so that no bit of them changes."""
        places = pa.array([row["key"] for row in rows], pa.int64())
        numbers = {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("v", "n", "wait")}
        times = pa.array([row["time"] for row in rows], pa.int64())
        kind = self.types[port]
        keys = {name: values.take(places) for name, values in zip(kind.names, kind.values, strict=True)}
        given = {
            "time": times.cast(pa.timestamp("us", "UTC")),
            **keys,
            **numbers,
            "w": numbers["v"],
            TIME: times,
        }
        schema = self.schemas[port]
        return pa.table([given[name] for name in schema.names], schema=schema)

    def form(self):
        """Each form in turn."""
        return self.forms[self.epoch % len(self.forms)]

    def look(self, port, sent):
        """All spellings of a key have one hash."""
        super().look(port, sent)
        keys = [sent[name] for name in self.kernel.exchanges[port].keys]
        hashes = spark_hash(keys, sent.num_rows).tolist() if keys else []
        for key, each in zip(canonical(keys), hashes, strict=True):
            assert self.hashes_of.setdefault(key, each) == each, f"{key} has two hashes"

    def tuples(self, table):
        """The columns that the oracle tells, by name; all key columns are one canonical key."""
        keys = canonical([table[name] for name in self.types[0].names if name in table.column_names])
        columns = [["change", *self.operator.columns], self.operator.columns][not self.operator.changes]
        found = [keys if name == "k" else told(table[name]) for name in columns]
        return list(zip(*found, strict=True))

    def step(self, epoch, frontiers, *, drained=None):
        """Rescale before every epoch, then look where keys are."""
        if self.epoch:
            self.move(channels=self.sequence[self.epoch % len(self.sequence)])
        if self.epoch % 4 == 2 and not (hasattr(self.layout, "spread") and self.layout.spread.grids):
            self.check_places()
        super().step(epoch, frontiers, drained=drained)

    def remember_files(self):
        """The contract suite does; here it would take a third of the time."""

    @property
    def sequence(self):
        start = CHANNELS.index(self.channels)
        return [*CHANNELS[start:], *CHANNELS[:start]]

    def check_places(self):
        """The base rows of a key are in one channel; a join keeps rows without a key anywhere."""
        for table in self.kernel.tables:
            seen = {}
            for channel, segments in enumerate(self.record.channels):
                own = [each for each in segments if each.table == table.name and each.level == 0]
                for rows in (read(self.segments, each) for each in own if table.keys):
                    for key in set(canonical([rows[name] for name in table.keys])):
                        if not (self.operator.spread and None in key):
                            assert seen.setdefault(key, channel) == channel, f"{key} is in two channels"


def told(column):
    """Values for people: times as microseconds, the lists of top() as tuples."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_list(column.type):
        return [tuple((row["v"], row["rank"]) for row in each) for each in column.to_pylist()]
    return column.to_pylist()


def results(operator, types, folder, seed, schedule):
    """What a run gives and what the oracle says, both as sorted text."""
    relation = operator.build(streams_of(*(each.sql for each in types)), types[0].names)
    channels = CHANNELS[seed % len(CHANNELS)]
    run = KeyedRun(relation, folder, channels, seed, operator=operator, types=types)
    epochs = drawn(operator, types, np.random.default_rng(seed), schedule)
    found = run.run(epochs, operator.delay)
    assert all(len(rows) == len(epochs) * WIDTH for rows in run.accepted), "a row was late"
    if operator.changes:
        found = added_up(found, 1 + operator.columns.index("k"))
    ports = [[row for epoch in epochs for row in epoch[port]] for port in range(operator.ports)]
    end = 1 + max(row["time"] for rows in ports for row in rows)
    return sorted(map(repr, found)), sorted(map(repr, operator.oracle(ports, end)))


def cell(operator, types, folder, name):
    """One run over all values, three epochs and the drain: each of 1, 2, 3 and 8 channels once."""
    seed = zlib.crc32(name.encode())
    schedule = [[np.arange(len(each.values[0])) for each in types]] * (len(CHANNELS) - 1)
    return results(OPERATORS[operator], types, folder, seed, schedule)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_type_in_one_run(operator, tmp_path):
    """Each type has a key column, in which one type at a time varies; the others are null, in joins constant.

    A null leaves the hash as it is, so a key is where it would be with this column alone.
    """
    seed = zlib.crc32(operator.encode())
    kind, places = packed(np.random.default_rng(seed), constant=OPERATORS[operator].spread)
    # Types come and go, half of them at a time, so that keys of one type are close together.
    schedule = []
    for epoch in range(4):
        chosen = [places[(5 * epoch + each) % len(places)] for each in range(9)]
        schedule.append([np.concatenate(chosen)] * 2)
    found, expected = results(OPERATORS[operator], [kind] * 2, tmp_path, seed, schedule)
    assert found == expected


CELLS = {
    f"{operator} of {kind}": (operator, [KEY_TYPES[kind]] * 2) for operator in OPERATORS for kind in KEY_TYPES
}
CELLS |= {f"{operator} of {kind}": (operator, COMPARED[kind]) for operator in JOINS for kind in COMPARED}
# Neighbours are of one operator, and 21 types are no multiple of the step: all have their share.
SLICE = list(CELLS)[::8]


@pytest.mark.parametrize("name", SLICE)
def test_a_cell(name, tmp_path):
    found, expected = cell(*CELLS[name], tmp_path, name)
    assert found == expected


@pytest.mark.soak
@pytest.mark.parametrize("name", CELLS)
def test_every_cell(name, tmp_path):
    found, expected = cell(*CELLS[name], tmp_path, name)
    assert found == expected


def test_every_operator_with_channels_and_keys_is_in_the_matrix():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    own = {each for each in below(Operator) if each.__module__.startswith("penstock.") and each.stateful}
    kind = KEY_TYPES["bigint"]
    made = [each.build(streams_of(kind.sql, kind.sql), kind.names) for each in OPERATORS.values()]
    without_keys = {ChannelledStep.__qualname__}
    assert {each.__qualname__ for each in own} - without_keys == {
        type(each.operator).__qualname__ for each in made
    }


NESTED = [
    "struct(n + 0.1 AS a)",
    "struct(n AS a)",
    "named_struct('a', n + 0.1)",
    "array(n + 0.1)",
    "map(n, v)",
    "from_json(s, 'a int')",
    "sequence(n, v)",
    "transform(array(n), x -> x + 0.1)",
    "coalesce(struct(n + 0.1 AS a), NULL)",
    "CASE WHEN n > 1 THEN (named_struct('a', n + 0.1)) END",
    "if(n > 1, str_to_map(s), NULL)",
]


@pytest.mark.parametrize("key", NESTED)
def test_a_computed_key_that_is_nested_is_refused_when_written(key):
    """Defect: where the types of its fields were not known, it died in the first epoch."""
    stream = ps.stream("l", "time timestamp, s string, n int, v int", time="time")
    with pytest.raises(WrongType, match="a key has to be one plain value"):
        stream.group_by(k=key).window("1 hour")


STARTED = {name: each for name, each in OPERATORS.items() if not name.startswith("map")}


@pytest.mark.parametrize("operator", STARTED)
def test_a_key_that_only_spark_knows_to_be_nested_is_refused_at_the_start(operator):
    streams = [
        each.select("v", "n", "wait", k0="element_at(k0, 1)")
        for each in streams_of(("array<struct<a:int>>",), ("array<struct<a:int>>",))
    ]
    relation = OPERATORS[operator].build(streams, ["k0"])

    def spark_says(texts):
        return [("struct<a:int>" if "k0" in each else "bigint", True) for each in texts]

    with pytest.raises(WrongType, match="key 'k0' is struct<a:int>; a key has to be one plain value"):
        relation.operator.compile("timestamp", [spark_says] * len(relation.inputs))


def test_a_key_that_python_cannot_hold_is_told_in_words(tmp_path):
    kind, operator = KEY_TYPES["timestamp"], OPERATORS["process by visits"]
    relation = operator.build(streams_of(kind.sql), kind.names)
    run = KeyedRun(relation, tmp_path, operator=operator, types=(kind,))
    row = {"time": 0, "v": 0, "n": 0, "wait": 0, "key": len(kind.values[0]) - 2}
    with pytest.raises(BadProcess, match="a key is outside of the years 1 to 9999"):
        run.run([[[row]]], 0)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_an_operator_does_not_take_is_refused_when_written(operator, kind):
    sql = REFUSED[kind]
    if OPERATORS[operator].takes(sql):
        assert OPERATORS[operator].build(streams_of((sql,), (sql,)), ["k0"])
        return
    with pytest.raises(QueryError, match=r"key|by="):
        OPERATORS[operator].build(streams_of((sql,), (sql,)), ["k0"])
