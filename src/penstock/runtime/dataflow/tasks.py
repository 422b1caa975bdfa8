"""What tasks do in an epoch: read splits, run channels, and send rows on, as payloads for the next level.

All stages of a level share one exchange. Its partitions are the channels of these stages, one stage after
another. Rows for a stage of a later level are relayed by whatever tasks come before it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.columns import TIME
from penstock.connect import Split
from penstock.connect.results import ResultFile, ResultFormat
from penstock.operators.exchange import Form
from penstock.operators.kernel import Kernel
from penstock.runtime.dataflow.channels import ChannelTask, Formed, Receipt, late_pairs
from penstock.runtime.dataflow.intake import REJECTS, Intake
from penstock.runtime.dataflow.payloads import Inbox, Payload, TaskId
from penstock.runtime.dataflow.ports import OpenPort, PortMap
from penstock.runtime.dataflow.receipts import SentSeen, StreamSeen, TaskFile, TaskReceipt, summed
from penstock.runtime.dataflow.ways import Floors, OpenWays, ToPort, Way
from penstock.runtime.layout_files import LayoutFiles
from penstock.runtime.records import StagePlan
from penstock.runtime.refusals import Refusals
from penstock.state.storage import Location

__all__ = [
    "FORM",
    "HOME",
    "Compiled",
    "EpochWork",
    "Hosted",
    "LevelPart",
    "Tell",
    "run_channel",
    "run_reads",
    "run_rows",
]

FORM, HOME = 0, 1
"""The hops of rows: to channels that form partials for others, and to those that keep the result."""

Tell = Callable[[TaskReceipt], None]
Origin = str | int
"""A stream by its name, or a stage by its number."""


@dataclass(frozen=True)
class Hosted:
    """Where a port of a stage in the channels of others finds its rows: a stage, its way, and the columns."""

    stage: int
    way: int
    port: PortMap


@dataclass(frozen=True)
class Compiled:
    """What never changes in a run; workers get it once.

    `ways` are those of each stream and stage; `after` those behind a step that Spark evaluates, by the number
    of its way. `members` are the stages in the channels of each root, the root first, and `hosted` the ports
    of those that are not. For a second look at late tuples, `looks` are ways with every column, and `judging`
    ports whose rows are kept in files. `late` and `rejects` are where tuples of streams go that are set
    aside, `missed` where those of stages go.
    """

    intakes: Mapping[str, Intake]
    ways: Mapping[Origin, tuple[Way, ...]]
    after: Mapping[int, tuple[Origin, Way]]
    kernels: tuple[Kernel, ...]
    members: Mapping[int, tuple[int, ...]]
    hosted: Mapping[int, tuple[Hosted, ...]]
    routers: Location
    judging: tuple[PortMap, ...] = ()
    looks: Mapping[str, tuple[Way, ...]] = field(default_factory=dict)
    late: Mapping[str, ResultFormat] = field(default_factory=dict)
    rejects: Mapping[str, ResultFormat] = field(default_factory=dict)
    missed: Mapping[int, ResultFormat] = field(default_factory=dict)

    @cached_property
    def layout_files(self) -> LayoutFiles:
        """The files that layouts name, as far as this process has read them."""
        return LayoutFiles(self.routers)


@dataclass(frozen=True)
class LevelPart:
    """The channels of a stage in a level, which begin at a partition; on the first hop they form partials."""

    stage: int
    hop: int
    first: int
    channels: int


@dataclass(frozen=True)
class EpochWork:
    """One epoch, for all of its tasks.

    Tuples of a stream below its entry in `bounds` are late; rows for a port below its entry in `floors` come
    from a slower stage. `levels` are the parts of each exchange. Stages in `staying` run in the tasks that
    read their rows. `refusals` is where rows go that functions refuse, by stream and by stage.
    """

    now: int
    bounds: Mapping[str, int | None]
    plans: tuple[StagePlan, ...]
    levels: tuple[tuple[LevelPart, ...], ...]
    floors: Mapping[tuple[int, int], int] = field(default_factory=dict)
    staying: Mapping[int, ChannelTask] = field(default_factory=dict)
    refusals: Mapping[Origin, Refusals] = field(default_factory=dict)

    def partitions(self, level: int) -> int:
        """The number of partitions of an exchange; one at least, for what is relayed."""
        return max(sum(each.channels for each in self.levels[level]), 1) if level < len(self.levels) else 0

    def at(self, level: int, partition: int) -> tuple[LevelPart, int] | None:
        """The part that a partition belongs to, and its channel there."""
        for each in self.levels[level]:
            if each.first <= partition < each.first + each.channels:
                return each, partition - each.first
        return None

    def partition(self, payload: Payload, level: int) -> int:
        """Where a payload goes in an exchange: to its channel, or to any partition that relays it."""
        for each in self.levels[level]:
            if (each.stage, each.hop) == (payload.stage, payload.hop):
                return each.first + payload.channel
        return payload.channel % self.partitions(level)

    def two_hops(self, stage: int) -> bool:
        """Whether rows of a stage are formed by other channels than those that keep them."""
        return any(each.hop == FORM and each.stage == stage for level in self.levels for each in level)


@dataclass
class _Sending:
    """What every task that sends rows on has: its ports, and what they told."""

    compiled: Compiled
    work: EpochWork
    task: TaskId
    files: list[TaskFile] = field(default_factory=list)
    receipts: dict[int, tuple[Receipt, ...]] = field(default_factory=dict)
    sent: list[Mapping[int, SentSeen]] = field(default_factory=list)
    passed: dict[tuple[Origin, int], int] = field(default_factory=dict)

    def ways(self, origin: Origin, ways: Sequence[Way], refuse: Any) -> OpenWays:
        """The ways from an origin, open."""
        missed = self.compiled.missed.get(origin) if isinstance(origin, int) else None
        floors = None if missed is None else Floors(self.work.floors, missed)
        return OpenWays(ways, self.port, refuse, floors)

    def port(self, way: PortMap) -> Any:
        """A port of a stage, open."""
        if way.stage in self.work.staying:
            return _StayingPort(self, way)
        task = self.task.number
        if self.work.two_hops(way.stage) and not way.formed:
            former = way.kernel.distribution.former(self.work.plans[way.stage].own, task)
            return OpenPort(way, former, self.task, FORM)
        return OpenPort(way, self.home(way, task), self.task, HOME)

    def home(self, way: PortMap, task: int) -> Any:
        """Where the rows of a port are kept, or computed with."""
        layout = self.work.plans[way.stage].own
        return way.kernel.distribution.open(layout, self.compiled.layout_files, way.port, task)

    def closed(self, ways: OpenWays, origin: Origin) -> Iterator[Payload]:
        """Close ways: the last payloads."""
        for each in ways.close():
            filed = each if each.origin is not None else replace(each, origin=origin)
            self.files.append(filed)
        yield from ways.payloads()
        sent = ways.sent()
        self.sent.append(sent)
        for stage, seen in sent.items():
            self.passed[origin, stage] = self.passed.get((origin, stage), 0) + seen.tuples

    def receipt(self, **more: Any) -> TaskReceipt:
        """What the task did."""
        return TaskReceipt(
            self.task,
            sent=summed(self.sent),
            files=tuple(self.files),
            channels=self.receipts,
            passed=self.passed,
            **more,
        )

    def refuse(self, origin: Origin) -> Any:
        """The file of rows that functions refuse, None where they fail instead."""
        refusals = self.work.refusals.get(origin)
        return None if refusals is None else refusals.open()


@dataclass
class _StayingPort:
    """A port of a stage without state that takes rows where they are."""

    sending: _Sending
    way: PortMap
    seen: SentSeen = field(default_factory=SentSeen)

    def take(self, table: Any) -> Iterator[Payload]:
        """Let the kernel take the rows, and send on what it makes of them."""
        rows, stage = self.way.rows(table), self.way.stage
        if not rows.num_rows:
            return
        self.seen += SentSeen(rows=rows.num_rows, tuples=rows.num_rows)
        sending, task = self.sending, self.sending.work.staying[stage]
        receipt, payloads = _stepped(sending, task, sending.task.number, (rows,), "rows", {})
        sending.receipts[stage] = (*sending.receipts.get(stage, ()), receipt)
        yield from payloads

    def flush(self) -> Iterator[Payload]:
        """Nothing is held back."""
        return iter(())


def _stepped(  # noqa: PLR0913, PLR0917 -- a channel and its rows
    sending: _Sending,
    task: ChannelTask,
    number: int,
    new: tuple[Any | None, ...],
    form: Form,
    passed: dict[tuple[int, int], Any],
    read: float = 0.0,
) -> tuple[Receipt, list[Payload]]:
    """Run a kernel; its receipt, and what it sends on. Rows that stay in the channel go to `passed`."""
    stage, compiled = task.stage, sending.compiled
    refused = sending.refuse(stage)
    ways = sending.ways(stage, compiled.ways.get(stage, ()), None if refused is None else refused.add)
    kernel = compiled.kernels[stage]
    receipt = task.work(
        kernel, number, new, form, ways.take, None if refused is None else refused.add, read=read
    )
    passed.update({(stage, way): table for way, table in ways.onward().items()})
    before = len(sending.files)
    payloads = list(sending.closed(ways, stage))
    # Files for outputs, and for steps of Spark, are told with the channel; what is set aside is not.
    own = [each for each in sending.files[before:] if each.kind != "missed"]
    sending.files[before:] = [each for each in sending.files[before:] if each.kind == "missed"]
    outputs = tuple(each.output for each in own)
    told = () if refused is None else refused.close()
    return replace(receipt, outputs=outputs, refused=told), payloads


# Tasks that read.


class _Reading:
    """The tuples of one stream in a task: taken in, set aside, sent on."""

    def __init__(self, sending: _Sending, stream: str, ways: Sequence[Way], *, observed: bool) -> None:
        self.sending, self.intake = sending, sending.compiled.intakes[stream]
        self.bound, self.now = sending.work.bounds.get(stream), sending.work.now
        self.observed = observed
        self.refused = sending.refuse(stream)
        self.ways = sending.ways(stream, ways, None if self.refused is None else self.refused.add)
        self.seen = StreamSeen()
        self._late = self._file("late", self.intake.schema)
        self._rejects = self._file("rejects", REJECTS)

    def _file(self, kind: str, schema: Any) -> ResultFile | None:
        targets = self.sending.compiled.late if kind == "late" else self.sending.compiled.rejects
        target = targets.get(self.intake.name)
        return None if target is None or not self.observed else ResultFile(target, schema)

    def split(self, split: Split) -> Iterator[Payload]:
        """Read a split; a second time for its late tuples and rejects, since few splits have any."""
        aside = False
        for batch in split.read(self.intake.needed):
            taken = self.intake.take(batch, self.bound, self.now)
            aside |= taken.rejected is not None or taken.late is not None
            yield from self._taken(taken)
        if aside and self.observed:
            for batch in split.read(self.intake.schema.names):
                taken = self.intake.take(batch, self.bound, self.now)
                self._set_aside(batch, taken, split.file)

    def batch(self, batch: Any) -> Iterator[Payload]:
        """Take a batch that has every column."""
        taken = self.intake.take(batch, self.bound, self.now)
        if self.observed:
            self._set_aside(batch, taken, None)
        yield from self._taken(taken)

    def _taken(self, taken: Any) -> Iterator[Payload]:
        self.seen += taken.seen
        self.ways.take(taken.rows)
        yield from self.ways.payloads()

    def _set_aside(self, batch: Any, taken: Any, file: str | None) -> None:
        if taken.late is not None and self._late is not None:
            self._late.write(self.intake.late_rows(batch, taken.late))
        if taken.rejected is not None and self._rejects is not None:
            self._rejects.write(self.intake.rejects(batch, taken.rejected, self.now, file))

    def close(self) -> Iterator[Payload]:
        """Send what is held back and close all files."""
        name, sending = self.intake.name, self.sending
        yield from sending.closed(self.ways, name)
        for kind, file in (("late", self._late), ("rejects", self._rejects)):
            if file is not None:
                file.close()
                receipt = file.receipt()
                sending.files += [] if receipt is None else [TaskFile(kind, name, receipt)]
        if self.refused is not None:
            sending.files += [TaskFile("refused", name, each) for each in self.refused.close()]


def run_reads(
    compiled: Compiled, work: EpochWork, task: TaskId, reads: Iterable[tuple[str, Split]], tell: Tell
) -> Iterator[Payload]:
    """Read splits of streams and send their rows on."""
    sending = _Sending(compiled, work, task)
    opened: dict[str, _Reading] = {}
    for stream, split in reads:
        if stream not in opened:
            opened[stream] = _Reading(sending, stream, compiled.ways[stream], observed=True)
        yield from opened[stream].split(split)
    for each in opened.values():
        yield from each.close()
    tell(sending.receipt(streams={name: each.seen for name, each in opened.items()}))


def run_rows(  # noqa: PLR0913, PLR0917 -- where rows come from, and where they go
    compiled: Compiled,
    work: EpochWork,
    task: TaskId,
    stream: str,
    batches: Iterable[Any],
    tell: Tell,
) -> Iterator[Payload]:
    """Take batches of a stream that Spark has read, and send their rows on."""
    sending = _Sending(compiled, work, task)
    reading = _Reading(sending, stream, compiled.ways[stream], observed=True)
    for batch in batches:
        if batch.num_rows:
            yield from reading.batch(batch)
    yield from reading.close()
    tell(sending.receipt(streams={stream: reading.seen}))


def taken_rows(  # noqa: PLR0913, PLR0917 -- as above
    compiled: Compiled,
    work: EpochWork,
    task: TaskId,
    stream: str,
    reads: Iterable[Any],
    way: Way,
    tell: Tell,
    *,
    observed: bool,
) -> Iterator[Any]:
    """The rows of a stream before a step that Spark evaluates; `reads` are splits, or batches of Spark's."""
    sending = _Sending(compiled, work, task)
    reading = _Reading(sending, stream, (way,), observed=observed)
    for each in reads:
        payloads = reading.split(each) if isinstance(each, Split) else reading.batch(each)
        assert not list(payloads), "rows for Spark are no payloads"
        yield from _left(reading.ways)
    assert not list(reading.close()), "rows for Spark are no payloads"
    yield from _left(reading.ways)
    tell(sending.receipt(streams={stream: reading.seen} if observed else {}))


def _left(ways: OpenWays) -> Iterator[Any]:
    for table in ways.onward().values():
        yield from table.combine_chunks().to_batches()


def run_after(  # noqa: PLR0913, PLR0917 -- as above
    compiled: Compiled, work: EpochWork, task: TaskId, number: int, batches: Iterable[Any], tell: Tell
) -> Iterator[Payload]:
    """Send rows on that come from a step that Spark evaluates."""
    sending = _Sending(compiled, work, task)
    origin, way = compiled.after[number]
    refused = sending.refuse(origin)
    ways = sending.ways(origin, (way,), None if refused is None else refused.add)
    for batch in batches:
        if batch.num_rows:
            table = pa.Table.from_batches([batch])
            ways.take(pa.Table.from_arrays(table.columns, names=table.column_names))
            yield from ways.payloads()
    yield from sending.closed(ways, origin)
    if refused is not None:
        sending.files += [TaskFile("refused", origin, each) for each in refused.close()]
    tell(sending.receipt())


# Tasks of channels.


def run_channel(  # noqa: PLR0913, PLR0917 -- a partition of an exchange
    compiled: Compiled,
    work: EpochWork,
    tasks: Mapping[int, ChannelTask],
    level: int,
    partition: int,
    arrived: Iterable[Any],
    task: TaskId,
    tell: Tell,
) -> Iterator[Payload]:
    """Run the channel of a partition on what has arrived there; `tasks` are those of stages that run."""
    sending = _Sending(compiled, work, task)
    found = work.at(level, partition)
    inbox, relayed, began = Inbox(), 0, time.process_time()
    for data in arrived:
        payload = Payload.from_bytes(data)
        if found is not None and (payload.stage, payload.hop) == (found[0].stage, found[0].hop):
            inbox.add(payload)
        else:
            relayed += 1
            yield payload
    formed: dict[int, Formed] = {}
    if found is not None and found[0].hop == FORM:
        yield from _formed(sending, inbox, *found, formed)
    elif found is not None:
        part, channel = found
        passed: dict[tuple[int, int], Any] = {}
        for stage in compiled.members[part.stage]:
            if stage not in tasks:
                continue
            read = 0.0
            if stage == part.stage:
                new, form = _new(compiled.kernels[stage], inbox)
                read = time.process_time() - began
            else:
                new, form = _in_place(compiled.hosted[stage], passed), "rows"
            receipt, payloads = _stepped(sending, tasks[stage], channel, new, form, passed, read)
            sending.receipts[stage] = (receipt,)
            yield from payloads
    tell(sending.receipt(consumed=inbox.consumed, formed=formed, relayed=relayed))


def _new(kernel: Kernel, inbox: Inbox) -> tuple[tuple[Any | None, ...], Form]:
    """The new rows of each port; if any are partials, all become partials."""
    raw: list[list[Any]] = [[] for _ in kernel.exchanges]
    partials: list[Any] = []
    for payload in inbox.payloads():
        (partials if payload.formed else raw[payload.port]).append(payload.rows())
    tables = [pa.concat_tables(each) if each else None for each in raw]
    if not partials:
        return tuple(tables), "rows"
    if tables[0] is not None:
        partials.insert(0, kernel.form(tables[0]))
    return (pa.concat_tables([each.cast(kernel.partials) for each in partials]),), "combined"


def _in_place(ports: Sequence[Hosted], passed: Mapping[tuple[int, int], Any]) -> tuple[Any | None, ...]:
    """The rows of each port among those that other stages left in the channel."""
    tables = [passed.get((each.stage, each.way)) for each in ports]
    return tuple(
        None if table is None or not table.num_rows else each.port.rows(table)
        for each, table in zip(ports, tables, strict=True)
    )


def _formed(
    sending: _Sending, inbox: Inbox, part: LevelPart, channel: int, told: dict[int, Formed]
) -> Iterator[Payload]:
    """Partials of what has arrived, sent to the channels that keep them."""
    began, kernel = time.process_time(), sending.compiled.kernels[part.stage]
    rows = [payload.rows() for payload in inbox.payloads()]
    if not rows:
        return
    table = pa.concat_tables(rows)
    way = PortMap(part.stage, 0, kernel, names=())
    port = OpenPort(way, sending.home(way, channel), sending.task, HOME)
    yield from port.partials(kernel.form(table))
    sending.sent.append({part.stage: port.seen})
    told[part.stage] = Formed(channel, table.num_rows, time.process_time() - began)


# A second look.


def judged_rows(
    compiled: Compiled,
    work: EpochWork,
    stage: int,
    reads: Iterable[tuple[str, Split]],
    late: Sequence[tuple[int, int]],
) -> Iterator[Any]:
    """The tuples of splits that a stage found to be too late, by hash of key and bucket, as they came."""
    for stream, split in reads:
        ways = [way for way in compiled.looks.get(stream, ()) if _leads_to(way, stage)]
        intake = compiled.intakes[stream]
        intake = replace(intake, needed=tuple(intake.schema.names))
        for batch in split.read(intake.needed) if ways else ():
            taken = intake.take(batch, work.bounds.get(stream), work.now)
            for way in ways:
                yield from _judged(way, way.rows(taken.rows), late)


def _leads_to(way: Way, stage: int) -> bool:
    return isinstance(way.end, ToPort) and way.end.port.stage == stage


def _judged(way: Way, rows: Any, late: Sequence[tuple[int, int]]) -> Iterator[Any]:
    end = way.end
    assert isinstance(end, ToPort)
    yield from _among(end.port, rows, late)


def _among(port: PortMap, rows: Any, late: Sequence[tuple[int, int]]) -> Iterator[Any]:
    mask = late_pairs(port.rows(rows), port.exchange, late)
    if mask.any():
        yield rows.filter(pa.array(mask))


def judged_files(
    compiled: Compiled,
    stage: int,
    between: Location,
    files: Iterable[tuple[int, str]],
    late: Sequence[tuple[int, int]],
) -> Iterator[Any]:
    """The same among rows that were kept in files, since nobody can read them again."""
    for number, name in files:
        port = compiled.judging[number]
        if port.stage == stage:
            with between.input(name) as file:
                yield from _among(port, pq.ParquetFile(file).read(), late)


def written_late(tables: Iterable[Any], stage: int, target: ResultFormat) -> tuple[TaskFile, ...]:
    """Late rows in files, one for each kind of columns."""
    files: dict[Any, ResultFile] = {}
    for table in tables:
        shown = table.drop_columns([TIME]) if TIME in table.column_names else table
        files.setdefault(shown.schema, ResultFile(target, shown.schema)).write(shown)
    found = []
    for each in files.values():
        each.close()
        receipt = each.receipt()
        found += [] if receipt is None else [TaskFile("judged", stage, receipt)]
    return tuple(found)
