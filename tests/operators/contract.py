"""The channels of any stateful operator without Spark, and what every operator is held to.

`KernelRun` does what a run does for one stage, on Arrow and real files: it evaluates the exchanges, routes
rows, asks the kernel how far it comes, runs a task in every channel, and moves state between routers. It
deals rows out in a random order and with random salts, so nothing may depend on the order in which a shuffle
brings them.
"""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from penstock.runtime.in_place import in_place
from penstock.runtime.spark.exchange import PORT, SLOT, slots
from penstock.runtime.spark.forming import _BUSY, _FORMER
from penstock.runtime.stage_outputs import StageOutput
from pyspark import cloudpickle

from penstock.expressions.duck import evaluate
from penstock.operators.exchange import HASH, TIME
from penstock.operators.kernel import Seen
from penstock.routing import (
    PARTITIONINGS,
    Batches,
    Frequencies,
    Goal,
    Growth,
    Spread,
    first_router,
    next_router,
    shaped_grid,
    step_toward,
)
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.records import StageRecord
from penstock.runtime.rescale.batching import planned_batches
from penstock.runtime.rescale.moving import placing
from penstock.runtime.stage import ChannelTask, Receipt, window_channels
from penstock.state import Departure, Location, MoveTask, MovingStage, StateLayout, gathered
from transpiled import translate

NOTHING = np.zeros(0, np.uint64)


def frontier_of_port(frontiers, port):
    """The rule of most operators: a row is late if the frontier of its port has passed it."""
    return frontiers[port] if frontiers else None


@dataclass(frozen=True)
class Case:
    """An operator in the suite.

    - `relation`: made by the operator over streams.
    - `rows`: draws a row, for each port, with its time in microseconds.
    - `oracle`: the results of all accepted rows, from those of each port and the time at which everything has
      ended: tuples of the columns of the result, times in microseconds.
    - `distinct`: the oracle has no order for rows of one time in one port, so it is not asked about such.
    - `late_below`: says apart from the kernel which rows are late, by the frontiers before the epoch.
    - `group`: results are changes, which add up to what the oracle says; so many columns tell their groups.
    - `dated`: rows of the oracle say in `closed` how far the frontier of their port was before their epoch.
    """

    relation: object
    rows: tuple
    oracle: Callable
    distinct: bool = False
    late_below: Callable = frontier_of_port
    dated: bool = False
    group: int | None = None


def added_up(changes, keys):
    """What changes leave: (change, columns that tell a group, values) in order, each checked."""
    found = {}
    for change, *row in changes:
        group, values = tuple(row[:keys]), tuple(row[keys:])
        if change == "insert":
            assert group not in found, f"{group} is inserted twice"
        elif change == "retract":
            assert found.pop(group) == values, f"{group} is retracted with other values"
            continue
        else:
            assert change == "update"
            assert group not in found, f"{group} is updated and was not retracted"
        found[group] = values
    return [(*group, *values) for group, values in found.items()]


@dataclass
class KernelRun:
    """One stage in channels, epoch after epoch.

    With `restless`, state moves, epochs are replayed and idle channels run at random; otherwise only what a
    test asks for happens. Rows that functions refuse go to `refusals`; without it, such functions fail.
    """

    relation: object
    folder: str
    channels: int = 1
    seed: int = 0
    restless: bool = False
    refusals: object = None
    results: list = field(default_factory=list)
    accepted: tuple = ()
    epoch: int = 0
    moved: int = 0
    earliest: float = np.inf

    def __post_init__(self):
        streams, operator = self.relation.inputs, self.relation.operator
        compiled = operator.compile(self.relation.time_type, [described(each.schema) for each in streams])
        self.kernel = cloudpickle.loads(cloudpickle.dumps(compiled))
        self.rng = np.random.default_rng(self.seed)
        self.single = operator.why_single() is not None
        channels = 1 if self.single else self.channels
        router = first_router("uniform", channels) if self.kernel.exchanges[0].keys else None
        windows = self.kernel.exchanges[0].windows
        self.layout = StateLayout(router, channels, batches=windows and Batches(windows.batch))
        self.record = StageRecord(channels=((),) * channels)
        self.segments = Location(f"{self.folder}/segments")
        self.segments.make()
        self.accepted = tuple([] for _ in streams)
        self.hashes = NOTHING
        self.written = {}
        self.ports = [EvaluatedPort.of(*each) for each in zip(self.kernel.exchanges, streams, strict=True)]

    # A whole run.

    def run(self, epochs, delay):
        """All epochs and the drain; the results. An epoch has a list of rows for each port."""
        latest = [None] * len(self.ports)
        for epoch in epochs:
            for port, rows in enumerate(epoch):
                times = [row["time"] for row in rows] + ([] if latest[port] is None else [latest[port]])
                latest[port] = max(times, default=None)
            self.step(epoch, tuple(None if each is None else each - delay for each in latest))
        if any(each is not None for each in latest):
            self.drain(1 + max(each for each in latest if each is not None))
        self.check_files()
        return self.results

    def drain(self, end):
        """All input has ended, just before `end`."""
        frontiers = self.record.position.frontiers or (None,) * len(self.ports)
        self.step([[] for _ in self.ports], frontiers, drained=end)

    def step(self, epoch, frontiers, *, drained=None):
        """One epoch: rows of each port, and the frontiers after it."""
        if self.restless and self.rng.random() < 0.5:
            self.move()
        if self.restless and self.layout.batches is not None and self.rng.random() < 0.5:
            self.rebatch(int(self.rng.integers(1, 6)))
        in_time = [self._in_time(port, rows) for port, rows in enumerate(epoch)]
        before = self.record
        record, found = self._run(before, in_time, frontiers, drained)
        if self.restless and self.rng.random() < 0.3:
            again, same = self._run(before, in_time, frontiers, drained)
            assert sorted(map(repr, found)) == sorted(map(repr, same)), "a replay gave other results"
            assert again.position == record.position, "a replay came further or less far"
            record, found = (again, same) if self.rng.random() < 0.5 else (record, found)
        promise = before.position.promise
        if self.relation.operator.why_last() is None and promise is not None:
            assert self.earliest >= promise, "a result is earlier than was promised"
        # A manifest is JSON, so the next epoch starts from what that holds.
        self.record = StageRecord.from_json(json.loads(json.dumps(asdict(record))))
        assert self.record == record
        self.results += found
        for kept, new in zip(self.accepted, in_time, strict=True):
            kept.extend(new)
        self.epoch += 1
        self.remember_files()

    def _in_time(self, port, rows):
        bound = self.kernel.bound(self.record.position, port)
        return [row for row in rows if bound is None or row["time"] >= bound]

    def _run(self, before, rows, frontiers, drained):
        """An epoch from a record: the record after it, and its results."""
        form = self.form()
        dealt = [self._dealt(port, each, form) for port, each in enumerate(rows)]
        seen = Seen(
            rows=any(table is not None for port in dealt for table in port.channels),
            bucket=max((port.bucket for port in dealt if port.bucket is not None), default=None),
            state=any(before.channels),
        )
        advance = self.kernel.advance(before.position, _onward(before, frontiers), seen, drained)
        # Where an idle stage runs because another one in its channels is not, nothing may come of it.
        if advance.idle and not (self.restless and self.rng.random() < 0.5):
            self.earliest = np.inf
            return replace(before, position=advance.position), []
        task = ChannelTask(
            stage=0,
            kernel=self.kernel,
            folder=self.segments,
            label=f"e{self.epoch}",
            state=before.channels,
            before=before.position,
            after=advance.position,
            exits=(StageOutput(None, self.kernel.schema, None),),
            form=form,
            ended=advance.ended,
            windows=self.windows,
            refusals=self.refusals,
        )
        segments, found, times = [], [], [np.inf]
        for channel in range(self.layout.channels):
            new = _together(self.kernel.exchanges, [port.channels[channel] for port in dealt])
            receipt, onward = task.work(channel, new)
            # Defect 9: some operators reported no processor time.
            assert receipt.cpu_seconds > 0, "no processor time"
            assert receipt.received == (0 if new is None else new.num_rows)
            segments.append(Receipt.from_json(receipt.to_json()).segments)
            for table in onward.values():
                found += self.tuples(table)
                times += [pc.min(table[TIME]).as_py()] if table.num_rows else []
        self.earliest = min(times)
        assert not (advance.idle and found), "an idle stage gave results"
        return replace(before, position=advance.position, channels=tuple(segments)), found

    def tuples(self, table):
        """Results as tuples: the first column is the event time, unless they are changes; in microseconds."""
        return _tuples(table)

    # The exchange.

    def form(self):
        """How rows reach the channels in this epoch."""
        return str(self.rng.choice(self.forms)) if self.restless else self.forms[0]

    @property
    def forms(self):
        """Every way in which rows may reach the channels."""
        exchange = self.kernel.exchanges[0]
        return [*exchange.forms, *(["partials"] if exchange.parts else [])]

    def hashed(self, keys, rows):
        """The hash by which rows find their channel."""
        return spark_hash(keys, rows)

    def source(self, port, rows):
        """Tuples of a stream, with their time as Spark marks it."""
        return self.ports[port].source(rows)

    def _dealt(self, port, rows, form):
        """The rows of a port by channel, in the given form."""
        exchange, count = self.kernel.exchanges[port], self.layout.channels
        source = self.source(port, rows)
        sent = self.ports[port].sent(source)
        bucket = pc.max(sent[exchange.bucket.name]).as_py() if exchange.bucket and len(rows) else None
        if form == "combined" and rows:
            sent = self._combined(exchange, source, sent)
        elif form == "partials" and rows:
            sent = self._partials(sent)
        if exchange.hashed:
            hashes = self.hashed([sent[name] for name in exchange.keys], sent.num_rows)
            sent = sent.append_column(HASH, pa.array(hashes.view(np.int64)))
        by_window = exchange.windows is not None
        places, channels = self._by_window(sent) if by_window else self._routed(port, sent)
        tables = []
        for channel in range(count):
            own = self.rng.permutation(places[channels == channel])
            tables.append(sent.take(pa.array(own)) if len(own) else None)
        return DealtPort(tables, bucket)

    def _by_window(self, table):
        """Pairs of a row and a channel that computes one of its windows."""
        return self.windows.deliveries(self.kernel.exchanges[0].times(table))

    def _routed(self, port, table):
        """Pairs of a row and a channel that it goes to."""
        exchange, rows = self.kernel.exchanges[port], np.arange(table.num_rows)
        salts = self.rng.integers(0, 2**64, table.num_rows, dtype=np.uint64)
        if exchange.groupings:
            return rows, self.rng.integers(0, self.layout.channels, len(rows))
        if not exchange.keys:
            if len(self.ports) == 1:
                return rows, np.zeros(len(rows), np.int64)
            if exchange.everywhere:
                count = self.layout.channels
                return np.repeat(rows, count), np.tile(np.arange(count), len(rows))
            grid = shaped_grid(exchange.copied, self.layout.channels)
            copies = (grid.left, grid.right)[port](salts)
            return copies.rows, copies.channels
        keys = [table[name] for name in exchange.keys]
        hashes = self.hashed(keys, len(rows))
        self.hashes = np.union1d(self.hashes, hashes)
        if exchange.nulls == "equal":
            return rows, self.layout.router.route(hashes)
        spread = self.layout.join_router()
        copies = (spread.left, spread.right)[port](hashes, salts)
        known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in keys])
        lone = np.flatnonzero(~known) if exchange.nulls == "anywhere" else rows[:0]
        anywhere = self.rng.integers(0, self.layout.channels, len(lone))
        chosen = known[copies.rows]
        return (
            np.concatenate([copies.rows[chosen], lone]),
            np.concatenate([copies.channels[chosen], anywhere]),
        )

    def _combined(self, exchange, source, sent):
        """What Spark SQL combines on the map side; in random pieces, as it does so for each partition."""
        by = [*exchange.keys, exchange.bucket.name]
        for name in by:
            source = source.append_column(name, sent[name])
        names = [*(f'"{name}"' for name in by)]
        names += [f'{translate(sql)} AS "{name}"' for name, sql in exchange.combine.columns]
        found = []
        for piece in self._pieces(source):
            table = evaluate(f"SELECT {', '.join(names)} FROM input GROUP BY ALL", piece)
            found.append(table.select(self.kernel.partials.names).cast(self.kernel.partials))
        return pa.concat_tables(found)

    def _partials(self, sent):
        """What several channels form of their shares of the rows."""
        found = []
        for former, piece in enumerate(self._pieces(sent)):
            table = self.kernel.form(piece)
            numbers, busy = np.full(table.num_rows, former, np.int32), np.zeros(table.num_rows)
            found.append(table.append_column(_FORMER, pa.array(numbers)).append_column(_BUSY, pa.array(busy)))
        return pa.concat_tables(found)

    def _pieces(self, table):
        place = self.rng.integers(0, 3, table.num_rows)
        found = [table.filter(pa.array(place == each)) for each in range(3)]
        return [each for each in found if each.num_rows]

    @property
    def windows(self):
        """The channel of each window, where rows go by their windows."""
        return window_channels(self.kernel, self.layout.batches, self.layout.channels)

    # Moves.

    def rebatch(self, size):
        """Compute another number of windows together, from the next boundary on."""
        batches = planned_batches(self.kernel, self.layout.batches, self.record, size)
        self.layout = replace(self.layout, batches=batches)

    def move(self, layout=None, channels=None):
        """Bring all state to where another layout has it, by default any, of these or any channels."""
        before, after = self.layout, layout or self._any_layout(channels)
        stage = MovingStage(self.kernel.tables, self.record.channels, placing(self.kernel, before, after))
        task = MoveTask(self.segments, f"m{self.epoch}", (stage,))
        departures = {}
        for channel in task.sources(before, after):
            left = task.work(channel)
            departures[channel] = tuple(
                Departure.from_json(json.loads(json.dumps(each.to_json()))) for each in left
            )
        (channels,) = gathered(task, departures, after.channels)
        self.moved += sum(each.rows for every in departures.values() for each in every)
        self.record, self.layout = replace(self.record, channels=channels), after

    def _any_layout(self, channels=None):
        """Any router of these or any channels, or a step to it; hot keys of joins on any grids."""
        rng, channels = self.rng, 1 if self.single else channels or int(self.rng.integers(1, 6))
        if self.layout.router is None:
            return StateLayout(None, channels, batches=self.layout.batches)
        known = np.unique(rng.choice(self.hashes, 3)) if len(self.hashes) else NOTHING
        frequencies = Frequencies(known, np.full(len(known), 0.1))
        before = self.layout.router
        router = next_router(
            str(rng.choice(list(PARTITIONINGS))), before, frequencies, channels, Goal(domain=1000)
        )
        if rng.random() < 0.5:
            share = float(rng.uniform(0.05, 0.6))
            router = step_toward(before, router, frequencies, growth=Growth.LINEAR, share=share, domain=1000)
        return StateLayout(router, router.channels, self._any_spread(router.channels, known))

    def _any_spread(self, channels, keys):
        copied = self.kernel.exchanges[0].copied
        if copied == "neither" or self.rng.random() < 0.3:
            return None
        sizes, columns, targets = [], [], []
        for _ in keys:
            grid = shaped_grid(copied, int(self.rng.integers(1, channels + 1)))
            sizes.append(grid.channels)
            columns.append(grid.columns)
            targets += self.rng.permutation(channels)[: grid.channels].tolist()
        return Spread(tuple(keys.view(np.int64).tolist()), tuple(sizes), tuple(columns), tuple(targets))

    def remember_files(self):
        """Read every new file, for later."""
        for name in self.segments.names():
            if name not in self.written:
                self.written[name] = self.segments.read(name)

    def check_files(self):
        """No file that was written has changed or gone."""
        for name, data in self.written.items():
            assert self.segments.read(name) == data, f"{name} was changed"


@dataclass(frozen=True)
class DealtPort:
    """The rows of a port for each channel, None where there are none, and the last bucket among them."""

    channels: list
    bucket: int | None


@dataclass(frozen=True)
class EvaluatedPort:
    """The exchange of a port on Arrow: DuckDB evaluates its columns, and Spark's hash is ours.

    `hashed` are columns that DuckDB finds in its input: the hashes that columns of the exchange ask for.
    """

    exchange: object
    in_place: object
    schema: object
    hashed: tuple

    @classmethod
    def of(cls, exchange, stream):
        schema = pa.schema([*stream.schema.arrow(), (TIME, pa.int64())])
        hashed = []

        def named(match):
            hashed.append([name.strip(" `") for name in match[1].split(",")])
            return f"_hash{len(hashed) - 1}"

        columns = []
        for each in exchange.columns:
            sql = re.sub(
                r"^cast\(`(\w+)` AS ([^`]+)\)$", lambda match: _needed(match, stream.schema), each.sql
            )
            sql = re.sub(r"xxhash64\(([^()]*)\)", named, sql)
            sql = re.sub(r"shiftrightunsigned\(([^()]*), 1\)", rf"(shiftright(\1, 1) & {2**63 - 1})", sql)
            columns.append(replace(each, sql=sql))
        whole = pa.schema([*schema, *((f"_hash{place}", pa.int64()) for place in range(len(hashed)))])
        exchange = replace(exchange, columns=tuple(columns))
        return cls(exchange, in_place(exchange, whole), schema, tuple(hashed))

    def source(self, rows):
        """Tuples of the stream, with their time as Spark marks it."""
        return pa.table(
            {
                each.name: pa.array(
                    [row["time" if each.name == TIME else each.name] for row in rows],
                    pa.int64() if pa.types.is_timestamp(each.type) else each.type,
                ).cast(each.type)
                for each in self.schema
            },
            schema=self.schema,
        )

    def sent(self, source):
        """What the port sends of them."""
        for place, names in enumerate(self.hashed):
            hashes = spark_hash([source[name] for name in names], source.num_rows)
            source = source.append_column(f"_hash{place}", pa.array(hashes.view(np.int64)))
        return self.in_place.rows(source)


def _needed(match, schema):
    """A cast, unless the column has the type already: DuckDB is not asked to cast binary."""
    return f"`{match[1]}`" if schema.column(match[1]).type == match[2] else match[0]


def described(schema):
    """Types as Spark would tell them, of plain columns."""
    types = {each.name: each.type for each in schema.columns}
    return lambda texts: [(types[text.strip("`")], True) for text in texts]


def _onward(before, frontiers):
    """Frontiers never go back."""
    old = before.position.frontiers or (None,) * len(frontiers)
    return tuple(
        one if other is None or (one is not None and other < one) else other
        for one, other in zip(old, frontiers, strict=True)
    )


def _together(exchanges, tables):
    """The rows of all ports as one shuffle brings them, None if there are none."""
    if len(exchanges) == 1:
        return tables[0]
    sent = []
    for port, (table, places) in enumerate(zip(tables, slots(exchanges), strict=True)):
        if table is not None:
            columns = [pa.array([port] * table.num_rows, pa.int32())]
            columns += table.select([each.name for each in exchanges[port].columns]).columns
            sent.append(pa.table(columns, names=[PORT, *map(SLOT.format, places)]))
    return pa.concat_tables(sent, promote_options="default") if sent else None


def _tuples(table):
    """Results as tuples: the first column is the event time, unless they are changes; in microseconds."""
    columns = []
    for name in table.column_names[:-1]:
        column = table[name]
        columns.append(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column)
    if table.column_names[0] != "change":
        assert columns[0].to_pylist() == table[TIME].to_pylist()
    return list(zip(*(each.to_pylist() for each in columns), strict=True))
