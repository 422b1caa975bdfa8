"""The one shape of every stage: an exchange to its channels, and a kernel in each of them.

A stage object is made once when a run starts. What changes from epoch to epoch comes in as arguments and is
returned as a record, so the last manifest is all that a run remembers.
"""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.compile import Stage
from penstock.connect.results import Output
from penstock.operators.cost_meter import CostMeter
from penstock.operators.exchange import HASH, Exchange, Form
from penstock.operators.kernel import Channel, Kernel, StagePosition
from penstock.operators.poison import Refuse
from penstock.routing import Batches, WindowChannels
from penstock.runtime.epoch_input import PortInput
from penstock.runtime.in_place import InPlace, InPlacePorts
from penstock.runtime.occupied import Occupied
from penstock.runtime.progress import ChannelWork
from penstock.runtime.refusals import Refusals
from penstock.runtime.rescale.frequent_keys import KeyCounts, count_keys
from penstock.runtime.spark.exchange import PORT, SLOT, SparkExchange, slots
from penstock.runtime.spark.forming import Formed, merged
from penstock.runtime.stage_outputs import OpenStageOutputs, StageOutput
from penstock.sketches import ValueCosts
from penstock.state.segments import ChannelStore, Segment
from penstock.state.storage import Location

__all__ = [
    "ChannelTask",
    "Receipt",
    "StageRunner",
    "channel_work",
    "folded",
    "hosted_by",
    "window_channels",
]


@dataclass(frozen=True)
class StageRunner:
    """A stage ready to run: its kernel, its inputs and its outputs.

    A stage that runs in the channels of another stage has `in_place` instead of an exchange.
    """

    stage: Stage
    kernel: Kernel
    inputs: tuple[PortInput, ...]
    exits: tuple[StageOutput, ...]
    exchange: SparkExchange
    in_place: InPlace | InPlacePorts | None = None

    @property
    def number(self) -> int:
        """The number of the stage."""
        return self.stage.number

    @property
    def hosts(self) -> tuple[tuple[int, int], ...]:
        """Where a stage in the channels of others finds the rows of each port: a stage and its exit."""
        ways = [
            (feed.origin, way)
            for each in self.inputs
            for feed, way in zip(each.port, each.exits, strict=True)
        ]
        if self.in_place is None:
            return ()
        return tuple((origin, way) for origin, way in ways if isinstance(origin, int) and way is not None)

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms in which its rows may reach the channels, the better guess first."""
        return ("rows",) if self.in_place else self.kernel.exchanges[0].forms

    @property
    def may_split(self) -> bool:
        """Whether rows of a hot key may be formed in several channels."""
        return self.in_place is None and any(each.parts and each.keys for each in self.kernel.exchanges)

    @property
    def deals(self) -> bool:
        """Whether rows without a key are dealt out to channels that form partials."""
        return self.in_place is None and any(each.parts and not each.keys for each in self.kernel.exchanges)

    @property
    def may_rebatch(self) -> bool:
        """Whether plans say how many windows are computed together."""
        windows = self.kernel.exchanges[0].windows
        return self.in_place is None and windows is not None and not windows.fixed


def hosted_by(runners: Sequence[StageRunner], number: int) -> list[StageRunner]:
    """The stages that run in the channels of a stage, each after the one that feeds it."""
    members = {number}
    for runner in runners:
        if runner.stage.host in members:
            members.add(runner.number)
    return [runner for runner in runners if runner.number in members - {number}]


def window_channels(kernel: Kernel, batches: Batches | None, channels: int) -> WindowChannels | None:
    """The channel of each window, where rows go to the channels of their windows."""
    windows = kernel.exchanges[0].windows
    if windows is None or batches is None:
        return None
    return WindowChannels(windows.shape, batches, channels)


@dataclass(frozen=True)
class Receipt:
    """What a channel of a stage did in an epoch: its output and state, its input, and its time.

    `received` rows came in; they represent `tuples`. `seconds` is how long the kernel was busy, and
    `cpu_seconds` the processor time of all threads, that of reading the rows included. `keys` counts the
    keys of the input; `formed` is what other channels formed for this one. `refused` are the files of rows
    that functions of the user could not take. `costs` is what rows cost by their value, as text. `late` are
    hash of key and bucket of the tuples that its kernel found to be too late. Of the tuples, `partly_late`
    came too late for some of their windows.
    """

    channel: int
    segments: tuple[Segment, ...]
    outputs: tuple[Output, ...]
    received: int = 0
    tuples: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    keys: KeyCounts = field(default_factory=KeyCounts)
    formed: tuple[Formed, ...] = ()
    refused: tuple[Output, ...] = ()
    costs: str = ""
    late: tuple[tuple[int, int], ...] = ()
    partly_late: int = 0

    @property
    def learnt(self) -> ValueCosts | None:
        """What rows cost by their value, None if nothing was measured."""
        return ValueCosts.from_bytes(base64.b85decode(self.costs)) if self.costs else None

    @property
    def busy(self) -> float:
        """How long the kernel was busy, plus the other channels that formed partials for this one."""
        return self.seconds + sum(each.seconds for each in self.formed)

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """The receipt from its text."""
        value = json.loads(text)
        segments = tuple(Segment(**each) for each in value.pop("segments"))
        outputs = tuple(Output(**each) for each in value.pop("outputs"))
        keys = KeyCounts.from_json(value.pop("keys"))
        formed = tuple(Formed(**each) for each in value.pop("formed"))
        refused = tuple(Output(**each) for each in value.pop("refused"))
        late = tuple((key, bucket) for key, bucket in value.pop("late"))
        return cls(
            segments=segments,
            outputs=outputs,
            keys=keys,
            formed=formed,
            refused=refused,
            late=late,
            **value,
        )


def channel_work(receipts: Sequence[Receipt]) -> tuple[ChannelWork, ...]:
    """What each channel of a stage did: the rows it took or formed, and its time for both.

    One receipt per channel, in order.
    """
    rows = [0 if each.formed else each.tuples for each in receipts]
    forming = [0.0] * len(receipts)
    for formed in (formed for each in receipts for formed in each.formed):
        rows[formed.former] += formed.rows
        forming[formed.former] += formed.seconds
    return tuple(
        ChannelWork(count, each.seconds + formed, each.cpu_seconds + formed)
        for count, each, formed in zip(rows, receipts, forming, strict=True)
    )


def folded(receipts: Sequence[Receipt], channels: int) -> list[Receipt]:
    """The receipts of tasks that ran where their rows were, as those of so many channels that take turns.

    They are for measures alone: files are those of the tasks.
    """
    found = [Receipt(channel, (), ()) for channel in range(channels)]
    for each in receipts:
        at = each.channel % channels
        found[at] = replace(
            found[at],
            received=found[at].received + each.received,
            tuples=found[at].tuples + each.tuples,
            seconds=found[at].seconds + each.seconds,
            cpu_seconds=found[at].cpu_seconds + each.cpu_seconds,
        )
    return found


@dataclass(frozen=True)
class ChannelTask:
    """One epoch's work for every channel of a stage, shipped to the workers.

    A stage that runs in the channels of others takes the rows of each port from one of `hosts`, an exit of
    another stage, through `in_place`. `refusals` is where rows go for which a function raises; without it the
    task fails. If it is `thorough`, the channels sketch the keys of all their rows; if it is `sampled`, they
    measure what rows cost where that depends on a value. `windows` says which channel computes each window,
    where rows go by their windows.
    """

    stage: int
    kernel: Kernel
    folder: Location
    label: str
    state: tuple[tuple[Segment, ...], ...]
    before: StagePosition
    after: StagePosition
    exits: tuple[StageOutput, ...]
    form: Form = "rows"
    ended: bool = False
    hosts: tuple[tuple[int, int], ...] = ()
    in_place: InPlace | InPlacePorts | None = None
    refusals: Refusals | None = None
    thorough: bool = False
    sampled: bool = True
    windows: WindowChannels | None = None

    def taken(self, passed: Mapping[tuple[int, int], Any]) -> Any:
        """Its rows among those that other stages left in the channel: by port if it has several, or None."""
        found = tuple(passed.get(each) for each in self.hosts)
        if len(found) == 1 or not any(table is not None for table in found):
            return found[0]
        return found

    def work(self, number: int, rows: Any, read: float = 0.0) -> tuple[Receipt, Mapping[int, Any]]:
        """From new rows (None if there are none) to a receipt, and the rows that stay in the channel.

        `read` is the processor time that it took to read the rows. A worker process runs one task at a time,
        so the time of the process, with all threads of DuckDB and Arrow, is that of the task.
        """
        began, cpu_began = time.perf_counter(), time.process_time()
        refused = None if self.refusals is None else self.refusals.open()
        refuse = None if refused is None else refused.add
        files = OpenStageOutputs(self.exits, refuse)
        if self.in_place is not None and rows is not None:
            rows = self.in_place.rows(rows)
        received = 0 if rows is None else rows.num_rows
        formed: tuple[Formed, ...] = ()
        if self.form == "partials" and rows is not None:
            rows, formed = merged(self.kernel, rows, self._counts(number, rows))
        new = _by_port(self.kernel.exchanges, rows)
        late: list[Any] = []
        with Occupied() as occupied:
            meter = CostMeter(occupied, time.process_time) if self._measured else None
            segments = self._stepped(number, new, files, refuse, meter, late)
        costs = None if meter is None else meter.costs()
        weights = self._weights(rows)
        receipt = Receipt(
            channel=number,
            segments=segments,
            outputs=files.close(),
            received=received,
            tuples=self._tuples(number, rows, weights),
            seconds=time.perf_counter() - began,
            cpu_seconds=read + time.process_time() - cpu_began,
            # If the stage shares the channels of another stage, that one counts.
            keys=KeyCounts() if self.in_place else self._counted(new, weights),
            formed=formed,
            refused=() if refused is None else refused.close(),
            costs="" if costs is None else base64.b85encode(costs.to_bytes()).decode(),
            late=_pairs(late, self.kernel.exchanges[0]),
            partly_late=self.kernel.partly_late(self.before, new, self.form),
        )
        return receipt, files.onward()

    def _stepped(  # noqa: PLR0913, PLR0917 -- what a channel is given beside its task
        self,
        number: int,
        new: tuple[Any | None, ...],
        files: OpenStageOutputs,
        refuse: Refuse | None,
        meter: CostMeter | None,
        late: list[Any],
    ) -> tuple[Segment, ...]:
        """Let the kernel take the new rows; the segments of its state afterwards."""
        return self.kernel.step(
            Channel(
                number=number,
                new=new,
                form=self.form,
                store=ChannelStore(self.folder, f"{self.label}-{number}", self._held(number)),
                before=self.before,
                after=self.after,
                ended=self.ended,
                emit=files.write,
                refuse=refuse,
                channels=len(self.state),
                meter=meter,
                late=late.append,
                windows=self.windows,
            )
        )

    def _held(self, number: int) -> tuple[Segment, ...]:
        """The state of a channel; without any, tasks may be more than channels, and rows stay in them."""
        return self.state[number] if self.kernel.tables else ()

    @property
    def _measured(self) -> bool:
        """Whether the costs of rows, or of windows, decide on later plans."""
        exchange = self.kernel.exchanges[0]
        return bool(exchange.value and self.sampled) or (
            exchange.windows is not None and not exchange.windows.fixed
        )

    def _tuples(self, number: int, rows: Any, weights: Any) -> int:
        """The tuples behind the rows; of copies, the one on the channel of the last window counts."""
        if rows is None:
            return 0
        if self.windows is None:
            return int(rows.num_rows if weights is None else weights.sum())
        own = self._counts(number, rows)
        return int(own.sum() if weights is None else weights[own].sum())

    def _counts(self, number: int, rows: Any) -> Any:
        """Which rows count in this channel, as a mask; all where there are no copies."""
        if self.windows is None:
            return np.ones(rows.num_rows, np.bool_)
        return self.windows.last(self.kernel.exchanges[0].times(rows)) == number

    def _weights(self, rows: Any) -> Any:
        """The number of tuples behind each row, None if it is one."""
        combine = self.kernel.exchanges[0].combine
        if rows is None or combine is None or self.form == "rows":
            return None
        return rows[combine.weight].to_numpy()

    def _counted(self, new: tuple[Any | None, ...], weights: Any) -> KeyCounts:
        """The counts of the keys that came in, by port where there are several."""
        keyed = [
            table.select(list(each.keys)).rename_columns([str(place) for place in range(len(each.keys))])
            for each, table in zip(self.kernel.exchanges, new, strict=True)
            if table is not None and each.keys
        ]
        if not keyed:
            return KeyCounts()
        together = keyed[0] if len(keyed) == 1 else pa.concat_tables(keyed)
        ports = [0 if table is None else table.num_rows for table in new] if len(new) > 1 else []
        return count_keys(together.columns, together.num_rows, weights, ports=ports, thorough=self.thorough)


def _pairs(late: Sequence[Any], exchange: Exchange) -> tuple[tuple[int, int], ...]:
    """Hash of key and bucket of late tuples, each pair once."""
    if not late or exchange.bucket is None:
        return ()
    together = pa.concat_tables(late)
    pairs = zip(together[HASH].to_pylist(), together[exchange.bucket.name].to_pylist(), strict=True)
    return tuple(sorted(set(pairs)))


def _by_port(exchanges: Sequence[Exchange], rows: Any) -> tuple[Any | None, ...]:
    """The rows of each port; the rows of several ports come in one table of slots."""
    if len(exchanges) == 1 or rows is None:
        return (rows,) if len(exchanges) == 1 else (None,) * len(exchanges)
    found: list[Any | None] = []
    for port, (exchange, places) in enumerate(zip(exchanges, slots(exchanges), strict=True)):
        mine = pc.equal(rows[PORT], port)
        if not pc.any(mine).as_py():
            # In place, the slots of a port without rows may not be there.
            found.append(None)
            continue
        own = rows.select([SLOT.format(slot) for slot in places]).filter(mine).combine_chunks()
        found.append(pa.Table.from_arrays(own.columns, schema=exchange.schema))
    return tuple(found)
