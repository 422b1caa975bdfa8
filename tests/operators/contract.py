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

from penstock.control.sub_keys import SplitKey, SubKeyPlan
from penstock.operators.exchange import TIME
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
from penstock.runtime.dataflow.channels import ChannelTask, window_channels
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
from penstock.runtime.rescale.batching import planned_batches
from penstock.runtime.rescale.learnt_costs import LearntCosts, planned_grouping
from penstock.runtime.rescale.moving import placing
from penstock.state import Location, MovingStage, Segment, StateLayout

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
        self.costs = LearntCosts()
        self.written = {}

    def use(self, kernel):
        """Run this kernel, as a worker gets it."""
        routers = Location(f"{self.folder}/routers")
        routers.make()
        compiled = Compiled({}, {}, {}, (kernel,), {0: (0,)}, {}, routers)
        self.compiled = cloudpickle.loads(cloudpickle.dumps(compiled))
        (self.kernel,) = self.compiled.kernels
        self.routers = self.compiled.known_routers
        self.schemas = [
            pa.schema([*each.schema.arrow(), (TIME, pa.int64())]) for each in self.relation.inputs
        ]
        self.ports = [port_map(self.kernel, 0, port, each) for port, each in enumerate(self.schemas)]
        assert None not in self.ports, "only Spark can evaluate a port"

    def begin(self, channels):
        """Begin with so many channels and no state."""
        exchange = self.kernel.exchanges[0]
        router = first_router("uniform", channels) if exchange.keys else None
        batches = exchange.windows and Batches(exchange.windows.batch)
        self.layout = StateLayout(router, channels, batches=batches)
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
            windows=self.windows,
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
        self.costs.update([each.learnt for each in receipts if each.learnt])
        times = [pc.min(each[TIME]).as_py() for each in made if each.num_rows]
        self.earliest = min(times, default=np.inf)
        found = [row for each in made for row in self.tuples(each)]
        assert not (advance.idle and found), "an idle stage gave results"
        channels = tuple(each.segments for each in receipts)
        return replace(before, position=advance.position, channels=channels), found

    def _check_tuples(self, sent, receipts):
        """Channels take what ports have sent, as rows or in partials; of copies there are any number."""
        exchanges = self.kernel.exchanges
        if all(each.copied == "neither" and not each.everywhere and not each.windows for each in exchanges):
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
        return ["own", *combined, *(["two hops"] if exchange.parts else [])]

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
        exchange, layout = self.kernel.exchanges[0], self.layout
        grouping, costs = None, ""
        if exchange.groupings:
            costs = self.costs.stored(self.routers)
            elsewhere = [each for each in exchange.groupings if each != "in place"]
            grouping = planned_grouping(elsewhere, None, str(self.rng.choice(elsewhere)), costs)
        plan = StagePlan(
            layout.channels,
            router="" if layout.router is None else self.routers.store(layout.router),
            grouping=grouping,
            costs=costs,
            batches=layout.batches,
        )
        if form != "two hops" or layout.channels == 1:
            return plan
        if not exchange.keys:
            return replace(plan, run=int(self.rng.integers(3)))
        split = [
            SplitKey(each, 0.1, int(self.rng.integers(1, 5)))
            for each in self._known().view(np.int64).tolist()
        ]
        return replace(plan, sub_keys=SubKeyPlan(tuple(split)))

    def _exchanged(self, tables):
        """The inboxes of the channels after an exchange, or two, and what ports have sent."""
        form = self.form()
        plan = self.stage_plan(form)
        hops = [FORM, HOME] if plan.two_hops else [HOME]
        work = EpochWork(
            now=0,
            bounds={},
            plans=(plan,),
            spreads=(self.layout.spread,),
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
        """Any router of these or any channels, or a step to it; hot keys of joins on any grids."""
        rng, channels = self.rng, 1 if self.single else channels or int(self.rng.integers(1, 6))
        if self.layout.router is None:
            return StateLayout(None, channels, batches=self.layout.batches)
        known = self._known()
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
        return any_spread(self.rng, copied, channels, keys)

    def remember_files(self):
        """Read every new file, for later."""
        for name in self.segments.names():
            if name not in self.written:
                self.written[name] = self.segments.read(name)

    def check_files(self):
        """No file that was written has changed or gone."""
        for name, data in self.written.items():
            assert self.segments.read(name) == data, f"{name} was changed"


def any_spread(rng, copied, channels, keys):
    """These keys of a join on grids of any size in any channels."""
    sizes, columns, targets = [], [], []
    for _ in keys:
        grid = shaped_grid(copied, int(rng.integers(1, channels + 1)))
        sizes.append(grid.channels)
        columns.append(grid.columns)
        targets += rng.permutation(channels)[: grid.channels].tolist()
    return Spread(tuple(keys.view(np.int64).tolist()), tuple(sizes), tuple(columns), tuple(targets))


def described(schema):
    """Types as Spark would tell them, of plain columns."""
    types = {each.name: each.type for each in schema.columns}
    return lambda texts: [(types[text.strip("`")], True) for text in texts]


def _shown(payload):
    """A payload as text, whatever batches its rows are in."""
    return repr((replace(payload, data=b""), payload.rows().to_pylist()))


def _tuples(table):
    """Results as tuples: the first column is the event time, unless they are changes; in microseconds."""
    columns = []
    for name in table.column_names[:-1]:
        column = table[name]
        columns.append(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column)
    if table.column_names[0] != "change":
        assert columns[0].to_pylist() == table[TIME].to_pylist()
    return list(zip(*(each.to_pylist() for each in columns), strict=True))
