"""The seconds of each epoch around a change from 4 to 8 channels, for every kind of state.

State moves by reference, so the epoch of the change writes nothing; those after it read rows that are still
in the files of other channels, and rewrite them a few at a time. The curve shows what both cost.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

import penstock as ps
from penstock.errors import RunError
from penstock.query import Relation
from penstock_lab.bench.keyed_payloads import DDL, KeyedPayloads
from penstock_lab.bench.live_rescale import AFTER, BEFORE, Counters
from penstock_lab.bench.memory import used_cpu_s
from penstock_lab.bench.standstill import gaps
from penstock_lab.reports import Check, Value, say

__all__ = ["KINDS", "Curve", "curve_checks", "curve_of", "curve_rows"]

MOST_STANDSTILL_S = 0.5
MOST_OVER_MEDIAN = 2.0

_SHOWN = (-2, -1, 0, 1, 2, 3, 5, 10, 20, 30, 40, 50)
_TIMEOUT = 3600
_SOURCE = "a rescale of a gigabyte costs about an epoch, and later ones pay little for it"


@dataclass(frozen=True)
class Curve:
    """Seconds and processor seconds of epochs; that of the change has the number `change`."""

    seconds: tuple[float, ...]
    cpu: tuple[float, ...]
    change: int
    state_bytes: int

    @property
    def steady_s(self) -> float:
        """A steady epoch before the change."""
        return median(self.seconds[: self.change])

    @property
    def standstill_s(self) -> float:
        """How much longer the epoch of the change took than a steady one."""
        return max(0.0, self.seconds[self.change] - self.steady_s)

    @property
    def later(self) -> tuple[float, ...]:
        """Those after the change."""
        return self.seconds[self.change + 1 :]

    @property
    def worst_over_median(self) -> float:
        """The longest of them over their median."""
        return max(self.later) / median(self.later)


@dataclass
class _Watch:
    """Sees every epoch end, and asks for more channels after so many of them."""

    before: int
    whole: int
    ends: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        self.ends.append(time.perf_counter())
        self.cpu.append(used_cpu_s())
        self.state.append(sum(each.state_bytes for each in seen.stages[0].channels))
        if len(self.ends) == self.whole:
            self.over.set()
        return [ps.Rescale(0, AFTER)] if len(self.ends) == self.before else []


def _stream(name: str, folder: Path) -> Relation:
    return ps.stream(name, DDL, time="time", source=ps.files(str(folder), files_per_epoch=1, live=True))


def _keyed(folders: list[Path]) -> Relation:
    rows = _stream("rows", folders[0])
    state = "n bigint, total bigint, payload string"
    return rows.group_by("key").process(Counters(), state=state, result="n bigint", order="arrival")


def _joined(folders: list[Path]) -> Relation:
    left, right = (_stream(name, folder) for name, folder in zip(("left", "right"), folders, strict=True))
    pairs = left.join(right, "key", within="1 hour", how="full", suffixes=("_left", "_right"), named="time")
    return pairs.select(n="value_left", one="payload_left", other="payload_right")


def _panes(folders: list[Path]) -> Relation:
    rows = _stream("rows", folders[0])
    return rows.group_by("key").window("1 hour").agg(n=ps.count(), top=ps.max("payload"))


KINDS: Mapping[str, tuple[int, Callable[[list[Path]], Relation]]] = {
    "keyed": (1, _keyed),
    "join": (2, _joined),
    "panes": (1, _panes),
}
"""How many streams a query with each kind of state has, and the query."""


def curve_of(spark: SparkSession, kind: str, data: KeyedPayloads, place: Path) -> Curve:
    """Fill the state of a query, change its channels and go on."""
    streams, query = KINDS[kind]
    parts = [data.part(number, streams) for number in range(streams)]
    folders = [place / f"data-{number}" for number in range(streams)]
    for part, folder in zip(parts, folders, strict=True):
        part.write(folder)
    watch = _Watch(parts[0].before, parts[0].before + parts[0].after)
    run = (
        query(folders)
        .where("n < 0")
        .start(
            ps.memory(),
            checkpoint=str(place / "state"),
            channels=BEFORE,
            session=spark,
            most_moved=1 << 50,
            control="off",
            policy=watch,
        )
    )
    until = time.monotonic() + _TIMEOUT
    while not watch.over.wait(1) and run.running and time.monotonic() < until:
        pass
    run.stop()
    if not watch.over.is_set():
        raise RunError(f"only {len(watch.ends)} of {watch.whole} epochs in {_TIMEOUT} s; give less state")
    first = parts[0].before - 1  # the gap of an epoch has the number of the one before it
    start = first - data.steady
    curve = Curve(
        tuple(gaps(watch.ends)[start:]),
        tuple(gaps(watch.cpu)[start:]),
        data.steady,
        watch.state[first],
    )
    say(
        f"{kind}, {curve.state_bytes / 1e6:,.0f} MB: {curve.standstill_s:.2f} s over a steady epoch of "
        f"{curve.steady_s:.2f} s; then {median(curve.later):.2f} s, at most {max(curve.later):.2f} s"
    )
    return curve


def curve_rows(kind: str, curve: Curve) -> list[dict[str, Value]]:
    """A line for the whole, and one for each of some epochs; the seconds of all of them are in the first."""
    whole: dict[str, Value] = {
        "engine": "penstock",
        "case": f"{kind}, {BEFORE} -> {AFTER} channels, epoch by epoch",
        "state_mb": round(curve.state_bytes / 1e6, 1),
        "standstill_s": round(curve.standstill_s, 3),
        "steady_epoch_s": round(curve.steady_s, 3),
        "steady_after_s": round(median(curve.later), 3),
        "longest_after_s": round(max(curve.later), 3),
        "epochs_s": " ".join(f"{each:.3f}" for each in curve.seconds),
    }
    shown = [each for each in _SHOWN if 0 <= curve.change + each < len(curve.seconds)]
    each: list[dict[str, Value]] = [
        {
            "engine": "penstock",
            "case": f"{kind}, epoch {number:+d}" if number else f"{kind}, epoch of the change",
            "epoch_s": round(curve.seconds[curve.change + number], 3),
            "cpu_s": round(curve.cpu[curve.change + number], 3),
        }
        for number in shown
    ]
    return [whole, *each]


def curve_checks(kind: str, curve: Curve, unjudged: str) -> list[Check]:
    """That the change is short, and that no later epoch pays for it."""
    return [
        Check(
            f"standstill in seconds, {kind}",
            round(curve.standstill_s, 3),
            _SOURCE,
            ceiling=MOST_STANDSTILL_S,
            unjudged=unjudged,
        ),
        Check(
            f"longest of the {len(curve.later)} epochs after it over their median, {kind}",
            round(curve.worst_over_median, 2),
            _SOURCE,
            ceiling=MOST_OVER_MEDIAN,
            unjudged=unjudged,
        ),
    ]
