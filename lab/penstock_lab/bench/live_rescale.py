"""Penstock's way to more channels: the run goes on, and epochs move state until all is where it belongs."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import penstock as ps
from penstock.errors import RunError
from penstock.runtime.state_view import StateView
from penstock_lab.bench.keyed_payloads import DDL, KeyedPayloads
from penstock_lab.bench.results import Delivered, states_kept
from penstock_lab.bench.standstill import Standstill, gaps, standstill

__all__ = ["AFTER", "BEFORE", "Counters", "Rescaled", "rescale_live"]

BEFORE, AFTER = 4, 8
"""Channels before and after."""

_STATE = "n bigint, total bigint, payload string"
_TIMEOUT = 4 * 3600


@dataclass(frozen=True)
class Rescaled:
    """What a change of channels took, and what was there at the end; bytes are those written to move."""

    standstill: Standstill
    epochs: int
    state_bytes: int
    moved_bytes: int
    move_s: float
    channels: int
    kept: Delivered


class Counters(ps.Processor):
    """For each key how many rows there were, the sum of their values, and the last payload."""

    def step(self, block: ps.Block) -> ps.Outcome:
        """Add the rows of the block to what its keys have."""
        values = block.rows["value"].to_numpy()
        n = np.diff(np.append(block.first, len(values))) + block.state["n"].fill_null(0).to_numpy()
        total = np.add.reduceat(values, block.first) + block.state["total"].fill_null(0).to_numpy()
        payload = block.rows["payload"].take(pa.array(block.last))
        after = pa.table({"n": n, "total": total, "payload": payload})
        return ps.Outcome(after.select(["n"]), block.last, after)


@dataclass
class _Watch:
    """Sees every epoch end; asks for more channels after those before the change."""

    data: KeyedPayloads
    ends: list[float] = field(default_factory=list)
    seen: list[ps.StageChannels] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        self.ends.append(time.perf_counter())
        self.seen.append(seen.stages[0])
        if len(self.ends) == self.data.before + self.data.after:
            self.over.set()
        return [ps.Rescale(0, AFTER)] if len(self.ends) == self.data.before else []

    @property
    def change(self) -> int:
        """Epochs from the first on the way to more channels to the one that has them."""
        moving = [each.moving for each in self.seen[self.data.before :]]
        return moving.index(False) + 1 if False in moving else len(moving)


def rescale_live(
    spark: SparkSession, data: KeyedPayloads, files: list[Path], place: Path, most_moved: int | None = None
) -> Rescaled:
    """Run over all files, each an epoch, and rescale on the way, by default in steps."""
    source = ps.files(str(files[0].parent), files_per_epoch=1, live=True)
    rows = ps.stream("rows", DDL, time="time", source=source)
    counted = rows.group_by("key").process(Counters(), state=_STATE, result="n bigint", order="arrival")
    watch = _Watch(data)
    run = counted.where("n < 0").start(  # results are formed and dropped, as by Spark's noop sink
        ps.memory(),
        checkpoint=str(place / "state"),
        channels=BEFORE,
        session=spark,
        most_moved=most_moved or data.step,
        control="off",
        policy=watch,
    )
    _see_through(run, watch)
    return _rescaled(run, watch, place)


def _see_through(run: ps.Run, watch: _Watch) -> None:
    until = time.monotonic() + _TIMEOUT
    while not watch.over.wait(1) and run.running and time.monotonic() < until:
        pass
    run.stop()
    if not watch.over.is_set():
        expected = watch.data.before + watch.data.after
        raise RunError(f"only {len(watch.ends)} of {expected} epochs in {_TIMEOUT} s; give --state-mb less")


def _rescaled(run: ps.Run, watch: _Watch, place: Path) -> Rescaled:
    data, took = watch.data, gaps(watch.ends)
    first = data.before - 1  # the gap of an epoch has the number of the one before it
    steady, rest = took[first - data.steady : first], took[first:]
    view, export = StateView(place / "state"), place / "state.parquet"
    view.export(view.manifest(), 0, export)
    last = watch.seen[-1]
    return Rescaled(
        standstill=standstill(steady, rest[: watch.change], rest[watch.change :]),
        epochs=watch.change,
        state_bytes=sum(each.state_bytes for each in watch.seen[first].channels),
        moved_bytes=sum(each.bytes for each in run.decisions),
        move_s=sum(each.seconds for each in run.decisions),
        channels=0 if last.moving else len(last.channels),
        kept=states_kept(export),
    )
