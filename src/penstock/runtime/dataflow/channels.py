"""A channel of a stage in an epoch: its kernel over new rows and state, and what it tells of its work."""

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connect.results import Output
from penstock.distribution.distribution import KeyCounts, RowCosts, count_keys
from penstock.operators.cost_meter import CostMeter
from penstock.operators.exchange import HASH, Exchange, Form
from penstock.operators.kernel import Channel, Kernel, StagePosition
from penstock.operators.poison import Refuse
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.cores import NOWHERE, Node, here
from penstock.runtime.occupied import Occupied
from penstock.runtime.progress import ChannelWork
from penstock.runtime.refusals import Refusals
from penstock.sketches import ValueCosts
from penstock.state.segments import ChannelStore, Segment
from penstock.state.storage import Location

__all__ = ["ChannelTask", "Formed", "Receipt", "channel_work", "folded", "late_pairs"]


@dataclass(frozen=True)
class Formed:
    """What one channel formed for another: its number, the rows behind its partials, processor seconds."""

    former: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class Receipt:
    """What a channel of a stage did in an epoch: its output and state, its input, and its time.

    `received` rows came in; they represent `tuples`, and were `combined` if any of them was a partial.
    `seconds` is how long the kernel was busy, without waits for a processor, and `cpu_seconds` the processor
    time of all threads, that of reading the rows included. `keys` counts the keys of the input; `formed` is
    what other channels formed for this one. `refused` are the files of rows that functions of the user could
    not take. `costs` is what rows cost by their value, and `row_costs` what single ones cost, as text. `late`
    are hash of key and bucket of the tuples that its kernel found to be too late. Of the tuples,
    `partly_late` came too late for some of their windows. `node` ran it.
    """

    channel: int
    segments: tuple[Segment, ...]
    outputs: tuple[Output, ...]
    received: int = 0
    tuples: int = 0
    combined: bool = False
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    keys: KeyCounts = field(default_factory=KeyCounts)
    formed: tuple[Formed, ...] = ()
    refused: tuple[Output, ...] = ()
    costs: str = ""
    row_costs: str = ""
    late: tuple[tuple[int, int], ...] = ()
    partly_late: int = 0
    node: Node = NOWHERE

    @property
    def learnt(self) -> ValueCosts | None:
        """What rows cost by their value, None if nothing was measured."""
        return ValueCosts.from_bytes(base64.b85decode(self.costs)) if self.costs else None

    @property
    def rows_learnt(self) -> RowCosts | None:
        """What single rows cost, None if none was measured."""
        return RowCosts.from_bytes(base64.b85decode(self.row_costs)) if self.row_costs else None

    @property
    def busy(self) -> float:
        """How long the kernel was busy, plus the other channels that formed partials for this one."""
        return self.seconds + sum(each.seconds for each in self.formed)


def channel_work(receipts: Sequence[Receipt]) -> tuple[ChannelWork, ...]:
    """What each channel of a stage did: the rows it took or formed, and its time for both.

    One receipt per channel, in order. What was formed anywhere comes to its channel as partials, whose tuples
    are those of the formers.
    """
    every = [formed for each in receipts for formed in each.formed]
    rows = [0 if every else each.tuples for each in receipts]
    forming = [0.0] * len(receipts)
    for formed in every:
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
    """One epoch's work for every channel of a stage.

    `refusals` is where rows go for which a function raises; without it the task fails. If it is `thorough`,
    the channels sketch the keys of all their rows; if it is `measured`, they measure what rows or windows
    cost. `view` is what they have to know of the stage's layout. Keys are `counted` if somebody makes use of
    that; if it is `hosted` in the channels of another stage, that one counts them.
    """

    stage: int
    folder: Location
    label: str
    state: tuple[tuple[Segment, ...], ...]
    before: StagePosition
    after: StagePosition
    ended: bool = False
    hosted: bool = False
    refusals: Refusals | None = None
    counted: bool = True
    thorough: bool = False
    measured: bool = False
    view: Any = None

    def work(  # noqa: PLR0913, PLR0917 -- what a channel is given with its task
        self,
        kernel: Kernel,
        number: int,
        new: tuple[Any | None, ...],
        form: Form,
        emit: Callable[[Any], None],
        refuse: Refuse | None,
        *,
        formed: tuple[Formed, ...] = (),
        read: float = 0.0,
    ) -> Receipt:
        """From new rows of each port, None where there are none, to a receipt without outputs.

        `read` is the processor time that it took to read the rows. A worker process runs one task at a time,
        so the time of the process, with all threads of DuckDB and Arrow, is that of the task.
        """
        cpu_began = time.process_time()
        late: list[Any] = []
        with Occupied() as occupied:
            began = occupied()
            meter = CostMeter(occupied, time.process_time) if self.measured else None
            segments = kernel.step(
                Channel(
                    number=number,
                    new=new,
                    form=form,
                    store=ChannelStore(self.folder, f"{self.label}-{number}", self._held(kernel, number)),
                    before=self.before,
                    after=self.after,
                    ended=self.ended,
                    emit=emit,
                    refuse=refuse,
                    channels=len(self.state),
                    meter=meter,
                    late=late.append,
                    view=self.view,
                )
            )
            seconds = occupied() - began
        costs, rows = (None, None) if meter is None else (meter.costs(), meter.row_costs())
        weights = _weights(kernel, new[0], form)
        return Receipt(
            channel=number,
            segments=segments,
            outputs=(),
            received=sum(table.num_rows for table in new if table is not None),
            tuples=self._tuples(kernel, number, new, weights),
            combined=form == "combined",
            seconds=seconds,
            cpu_seconds=read + time.process_time() - cpu_began,
            keys=self._counted(kernel, new, weights) if self.counted and not self.hosted else KeyCounts(),
            formed=formed,
            costs="" if costs is None else base64.b85encode(costs.to_bytes()).decode(),
            row_costs="" if rows is None else base64.b85encode(rows.to_bytes()).decode(),
            late=_pairs(late, kernel.exchanges[0]),
            partly_late=kernel.partly_late(self.before, new, form),
            node=here(),
        )

    def _held(self, kernel: Kernel, number: int) -> tuple[Segment, ...]:
        """The state of a channel; without any, tasks may be more than channels, and rows stay in them."""
        return self.state[number] if kernel.tables else ()

    def _tuples(self, kernel: Kernel, number: int, new: tuple[Any | None, ...], weights: Any) -> int:
        """The tuples behind the rows; of copies, one may count."""
        (first, *others) = new
        count = int(sum(table.num_rows for table in others if table is not None))
        if first is None:
            return count
        own = None if self.hosted else kernel.distribution.counted(self.view, first, number)
        if own is None:
            return count + int(first.num_rows if weights is None else weights.sum())
        return int(own.sum() if weights is None else weights[own].sum())

    def _counted(self, kernel: Kernel, new: tuple[Any | None, ...], weights: Any) -> KeyCounts:
        """The counts of the keys that came in, by port where there are several."""
        keyed = [
            table.select(list(each.keys)).rename_columns([str(place) for place in range(len(each.keys))])
            for each, table in zip(kernel.exchanges, new, strict=True)
            if table is not None and each.keys
        ]
        if not keyed:
            return KeyCounts()
        together = keyed[0] if len(keyed) == 1 else pa.concat_tables(keyed)
        ports = [0 if table is None else table.num_rows for table in new] if len(new) > 1 else []
        return count_keys(together.columns, together.num_rows, weights, ports=ports, thorough=self.thorough)


def _weights(kernel: Kernel, rows: Any, form: Form) -> Any:
    """The number of tuples behind each row, None if it is one."""
    combine = kernel.exchanges[0].combine
    if rows is None or combine is None or form == "rows":
        return None
    return rows[combine.weight].to_numpy()


def _pairs(late: Sequence[Any], exchange: Exchange) -> tuple[tuple[int, int], ...]:
    """Hash of key and bucket of late tuples, each pair once."""
    if not late or exchange.bucket is None:
        return ()
    together = pa.concat_tables(late)
    pairs = zip(together[HASH].to_pylist(), together[exchange.bucket.name].to_pylist(), strict=True)
    return tuple(sorted(set(pairs)))


def late_pairs(rows: Any, exchange: Exchange, late: Sequence[tuple[int, int]]) -> Any:
    """Which rows of an exchange are among late ones, by hash of key and bucket, as a mask."""
    assert exchange.bucket is not None
    keys, buckets = (pa.array(each, pa.int64()) for each in zip(*late, strict=True))
    wanted = pa.table({"key": keys, "bucket": buckets})
    held = pa.table({"bucket": rows[exchange.bucket.name], "row": np.arange(rows.num_rows)})
    by = ["bucket"]
    if exchange.keys:
        hashes = spark_hash([rows[name] for name in exchange.keys], rows.num_rows).view(np.int64)
        held, by = held.append_column("key", pa.array(hashes)), ["bucket", "key"]
    found = np.zeros(rows.num_rows, np.bool_)
    found[held.join(wanted, by, join_type="left semi")["row"].to_numpy()] = True
    return found
