"""The channels of any stateful operator without Spark, and what every operator is held to.

`KernelRun` does what a run does for one stage, with the product's own parts: ports send rows as payloads,
channels take them from an inbox, the kernel says how far it comes, a task runs in every channel, and state
moves between routers. Rows are dealt out to tasks in a random order, cut anywhere, and payloads arrive in a
random order, so nothing may depend on the order in which a shuffle brings them.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle

from distribution.drawing import SETTINGS, any_forming, any_layout, mergeable, no_sample
from penstock.distribution.distribution import Change, Held
from penstock.operators.exchange import TIME
from penstock.operators.kernel import Seen
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.dataflow.channels import ChannelTask
from penstock.runtime.dataflow.payloads import Inbox, Payload, new_task
from penstock.runtime.dataflow.ports import port_map
from penstock.runtime.dataflow.receipts import SentSeen
from penstock.runtime.dataflow.tasks import (
    FORM,
    HOME,
    Compiled,
    EpochWork,
    LevelPart,
    _new,
    _Sending,
    run_channel,
)
from penstock.runtime.epoch import _onward
from penstock.runtime.records import StagePlan, StageRecord
from penstock.state import Location, MovingStage, Segment

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

    With `restless`, state moves, epochs are replayed, idle channels run, and rows come in any form, all at
    random; otherwise only what a test asks for happens. Rows that functions refuse go to `refusals`; without
    it, such functions fail.
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
        self.use(operator.compile(self.relation.time_type, [described(each.schema) for each in streams]))
        self.rng = np.random.default_rng(self.seed)
        self.single = operator.why_single() is not None
        self.begin(1 if self.single else self.channels)
        self.segments = Location(f"{self.folder}/segments")
        self.segments.make()
        self.accepted = tuple([] for _ in streams)
        self.hashes = NOTHING
        self.written = {}

    def use(self, kernel):
        """Run this kernel, as a worker gets it."""
        routers = Location(f"{self.folder}/routers")
        routers.make()
        compiled = Compiled({}, {}, {}, (kernel,), {0: (0,)}, {}, routers)
        self.compiled = cloudpickle.loads(cloudpickle.dumps(compiled))
        (self.kernel,) = self.compiled.kernels
        self.files = self.compiled.layout_files
        self.schemas = [
            pa.schema([*each.schema.arrow(), (TIME, pa.int64())]) for each in self.relation.inputs
        ]
        self.ports = [port_map(self.kernel, 0, port, each) for port, each in enumerate(self.schemas)]
        assert None not in self.ports, "only Spark can evaluate a port"

    def begin(self, channels):
        """Begin with so many channels and no state."""
        self.steering = self.kernel.distribution.steering(SETTINGS, self.files)
        self.layout = self.steering.first(channels, no_sample)
        self.record = StageRecord(channels=((),) * channels)

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
        if self.restless and "batch" in self.steering.choices() and self.rng.random() < 0.5:
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
        tables = [self.source(port, each) for port, each in enumerate(rows)]
        for port, table in enumerate(tables):
            self.look(port, self.ports[port].rows(table))
        inboxes, sent = self._exchanged(tables)
        seen = Seen(rows=bool(sent.rows), bucket=sent.last, state=any(before.channels))
        onward = _onward(before.position.frontiers, frontiers)
        advance = self.kernel.advance(before.position, onward, seen, drained)
        # Where an idle stage runs because another one in its channels is not, nothing may come of it.
        if advance.idle and not (self.restless and self.rng.random() < 0.5):
            self.earliest = np.inf
            return replace(before, position=advance.position), []
        task = ChannelTask(
            stage=0,
            folder=self.segments,
            label=f"e{self.epoch}",
            state=before.channels,
            before=before.position,
            after=advance.position,
            ended=advance.ended,
            measured=self.steering.measures(self.epoch),
            view=self.kernel.distribution.view(self.layout),
        )
        receipts, made = [], []
        for channel, inbox in enumerate(inboxes):
            new, form = _new(self.kernel, inbox)
            refused = None if self.refusals is None else self.refusals.open()
            refuse = None if refused is None else refused.add
            receipt = task.work(self.kernel, channel, new, form, made.append, refuse)
            # Defect 9: some operators reported no processor time.
            assert receipt.cpu_seconds > 0, "no processor time"
            receipts.append(pickle.loads(pickle.dumps(receipt)))
            if refused is not None:
                refused.close()
        self._check_tuples(sent, receipts)
        self.steering.learn(self.layout, receipts)
        times = [pc.min(each[TIME]).as_py() for each in made if each.num_rows]
        self.earliest = min(times, default=np.inf)
        found = [row for each in made for row in self.tuples(each)]
        assert not (advance.idle and found), "an idle stage gave results"
        channels = tuple(each.segments for each in receipts)
        return replace(before, position=advance.position, channels=channels), found

    def _check_tuples(self, sent, receipts):
        """Channels take what ports have sent, as rows or in partials; of copies there are any number."""
        if not self.kernel.distribution.copies:
            assert sum(each.tuples for each in receipts) == sent.tuples, "a tuple was lost or taken twice"

    def tuples(self, table):
        """Results as tuples: the first column is the event time, unless they are changes; in microseconds."""
        return _tuples(table)

    # The exchange.

    def form(self):
        """How rows reach the channels in this epoch."""
        return str(self.rng.choice(self.forms)) if self.restless else "own"

    @property
    def forms(self):
        """Every way in which rows may reach the channels: `own` is what the rows of each task decide."""
        exchange = self.kernel.exchanges[0]
        combined = ["rows", "combined", "either"] if exchange.combine is not None else []
        return ["own", *combined, *(["two hops"] if mergeable(exchange.distribution) else [])]

    def source(self, port, rows):
        """Tuples of a stream, with their time as an intake adds it."""
        schema = self.schemas[port]
        return pa.table(
            [
                pa.array(
                    [row["time" if each.name == TIME else each.name] for row in rows],
                    pa.int64() if pa.types.is_timestamp(each.type) else each.type,
                ).cast(each.type)
                for each in schema
            ],
            schema=schema,
        )

    def look(self, port, sent):
        """Look at what a port sends: the keys, for routers that know some of them."""
        keys = [sent[name] for name in self.kernel.exchanges[port].keys]
        if keys:
            self.hashes = np.union1d(self.hashes, spark_hash(keys, sent.num_rows))

    def stage_plan(self, form):
        """How the next epoch runs."""
        layout = self.layout
        if hasattr(layout, "grouping"):
            elsewhere = [each for each in self.steering.distribution.groupings if each != "in place"]
            asked = {"grouping": Change(0, "grouping", str(self.rng.choice(elsewhere)), "any")}
            layout = self.steering.follow(layout, asked, Held(), no_sample)
        forming = None
        if form == "two hops" and layout.channels > 1:
            forming = any_forming(self.rng, self.kernel.distribution, self._known())
        layout = replace(layout, forming=forming)
        plan = StagePlan.of(layout)
        assert StagePlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
        return plan

    def _exchanged(self, tables):
        """The inboxes of the channels after an exchange, or two, and what ports have sent."""
        form = self.form()
        plan = self.stage_plan(form)
        hops = [FORM, HOME] if plan.hops == 2 else [HOME]
        work = EpochWork(
            now=0,
            bounds={},
            plans=(plan,),
            levels=tuple((LevelPart(0, hop, 0, plan.channels),) for hop in hops),
        )
        payloads, seen = [], SentSeen()
        for number, pieces in enumerate(self._dealt(tables)):
            sending = _Sending(self.compiled, work, new_task(0, number))
            combines = {"rows": False, "combined": True, "either": bool(self.rng.integers(2))}.get(form)
            for port, rows in enumerate(pieces):
                made, own = self._sent(sending, port, rows, combines)
                if self.restless and self.rng.random() < 0.3:
                    again, same = self._sent(sending, port, rows, combines)
                    assert own == same, "another cut tells other numbers"
                    assert list(map(_shown, made)) == list(map(_shown, again)), "another cut sends other rows"
                payloads += made
                seen += own
        for level in range(len(hops) - 1):
            arrived, payloads, told = self._arrived(work, level, payloads), [], []
            for channel, data in enumerate(arrived):
                task = new_task(level + 1, channel)
                payloads += run_channel(self.compiled, work, {}, level, channel, data, task, told.append)
            seen += sum((each.sent[0] for each in told if each.sent), SentSeen())
        inboxes = []
        for data in self._arrived(work, len(hops) - 1, payloads):
            inboxes.append(Inbox())
            for each in data:
                inboxes[-1].add(Payload.from_bytes(each))
        return inboxes, seen

    def _dealt(self, tables):
        """The rows of each port for up to three tasks, in any order."""
        tasks = int(self.rng.integers(1, 4))
        dealt = [np.array_split(self.rng.permutation(each.num_rows), tasks) for each in tables]
        for task in range(tasks):
            yield [table.take(pa.array(own[task])) for table, own in zip(tables, dealt, strict=True)]

    def _sent(self, sending, port, rows, combines):
        """What a port sends of rows that come in any batches, and what it tells of them."""
        opened = sending.port(self.ports[port])
        opened._combines = combines
        cuts = [0, *np.sort(self.rng.integers(0, rows.num_rows + 1, 2)).tolist(), rows.num_rows]
        made = []
        for first, last in pairwise(cuts):
            made += opened.take(rows.slice(first, last - first))
        return [*made, *opened.flush()], opened.seen

    def _arrived(self, work, level, payloads):
        """The payloads of each partition, as bytes and in any order."""
        found = [[] for _ in range(work.partitions(level))]
        for place in self.rng.permutation(len(payloads)):
            found[work.partition(payloads[place], level)].append(payloads[place].to_bytes())
        return found

    # Moves.

    def rebatch(self, size):
        """Compute another number of windows together, from the next boundary on."""
        kept = [each for channel in self.record.channels for each in channel]
        bounds = (min(each.first for each in kept), max(each.end for each in kept)) if kept else None
        asked = {"batch": Change(0, "batch", size, "any")}
        self.layout = self.steering.follow(self.layout, asked, Held(bounds=bounds), no_sample)

    def move(self, layout=None, channels=None):
        """Bring all state to where another layout has it, by default any, of these or any channels."""
        before, after = self.layout, layout or self._any_layout(channels)
        placing = self.kernel.distribution.move(before, after, self.files)
        stage = MovingStage(self.kernel.tables, self.record.channels, placing)
        found = stage.move(self.segments, f"m{self.epoch}", after.channels)
        channels = tuple(
            tuple(Segment.from_json(json.loads(json.dumps(each.to_json()))) for each in segments)
            for segments in found.channels
        )
        self.moved += found.rows
        self.record, self.layout = replace(self.record, channels=channels), after

    def _known(self):
        """Some keys that rows have had."""
        return np.unique(self.rng.choice(self.hashes, 3)) if len(self.hashes) else NOTHING

    def _any_layout(self, channels=None):
        """Any layout of these or any channels."""
        keys, channels = self._known(), 1 if self.single else channels
        return any_layout(self.rng, self.kernel.distribution, self.layout, self.files, keys, channels)

    def remember_files(self):
        """Read every new file, for later."""
        for name in self.segments.names():
            if name not in self.written:
                self.written[name] = self.segments.read(name)

    def check_files(self):
        """No file that was written has changed or gone."""
        for name, data in self.written.items():
            assert self.segments.read(name) == data, f"{name} was changed"


def described(schema):
    """Types as Spark would tell them, of plain columns."""
    types = {each.name: each.type for each in schema.columns}
    return lambda texts: [(types[text.strip("`")], True) for text in texts]


def _shown(payload):
    """A payload as text, whatever batches its rows are in."""
    return repr((replace(payload, framed=b""), payload.rows().to_pylist()))


def _tuples(table):
    """Results as tuples: the first column is the event time, unless they are changes; in microseconds."""
    columns = []
    for name in table.column_names[:-1]:
        column = table[name]
        columns.append(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column)
    if table.column_names[0] != "change":
        assert columns[0].to_pylist() == table[TIME].to_pylist()
    return list(zip(*(each.to_pylist() for each in columns), strict=True))
