"""`penstock bench skew`: what a run that nobody touches does about hot keys that come and go.

Keys are drawn by Zipf over 100,000 keys, and the hot set is exchanged for another three times. Windows, an
outer join and a keyed function each run on eight channels: with control on, with control off, and by the two
plain hashes. Cost is the processor time of a channel, since the eight may share fewer cores. Each hot set has
its figure from the epochs that begin ten after it came: the busiest channel over the mean, next to the best
that any placement of whole keys allows. Uniform keys, for many epochs, have to be left alone.
"""

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import penstock as ps
from penstock.query import PartitioningName
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.results import Delivered, rows_delivered
from penstock_lab.bench.session import slotted_session
from penstock_lab.bench.standstill import gaps
from penstock_lab.reports import Check, Report, Value, report_here, say
from penstock_lab.workloads import draw, zipf_shares

__all__ = ["FULL", "QUICK", "HotSets", "skew"]

CHANNELS = 8
KEYS = 100_000
CEILING, NEAR_BEST = 1.15, 1.05
ON, OFF = "control on", "control off"
WAYS: Mapping[str, tuple[Literal["on", "off"], PartitioningName]] = {
    ON: ("on", "balanced"),
    OFF: ("off", "balanced"),
    "uniform": ("off", "uniform"),
    "consistent": ("off", "consistent"),
}
_DDL = "time timestamp, key bigint, value bigint"
_SECONDS = 10  # of event time in an epoch
_ROUNDS = 16
_START = 1_700_000_000_000_000


@dataclass(frozen=True)
class HotSets:
    """How much is run: rows of an epoch, epochs of each hot set, hot sets, and the exponents of Zipf.

    Within `settled` epochs after an exchange of the hot set the channels have to be even again. Over
    `quiet_epochs` of uniform keys nothing has to move.
    """

    rows: int = 150_000
    join_rows: int = 150_000
    epochs: int = 14
    settled: int = 10
    quiet_epochs: int = 300
    quiet_rows: int = 20_000
    sets: int = 4
    skews: tuple[float, ...] = (1.0, 1.2)
    cases: tuple[str, ...] = ("windows", "outer join", "process")
    ways: tuple[str, ...] = tuple(WAYS)
    unjudged: str = ""

    def write(self, folder: Path, skew: float, rows: int, seed: int) -> Path:
        """One Parquet file for each epoch; every hot set is a rotation of the keys."""
        rng = np.random.default_rng(seed)
        shares = zipf_shares(KEYS, skew)
        folder.mkdir(parents=True)
        for epoch in range(self.epochs * self.sets):
            # Ranks that lie far apart, so that no two hot sets have a key in common.
            rotated = draw(rng, shares, rows) + (epoch // self.epochs) * (KEYS // self.sets)
            _write(folder, epoch, rotated % KEYS, rng)
        return folder


FULL = HotSets()
QUICK = HotSets(
    rows=20_000,
    join_rows=3000,
    epochs=12,
    quiet_epochs=12,
    quiet_rows=2000,
    sets=2,
    skews=(1.0,),
    cases=("process",),
    ways=(ON, OFF),
    unjudged="channels with so few rows cost the same whatever they get; the bounds are for 150,000 an epoch",
)


def _write(folder: Path, epoch: int, keys: NDArray[np.int64], rng: np.random.Generator) -> None:
    spread = np.sort(rng.integers(0, _SECONDS * 1_000_000, len(keys)))
    times = _START + epoch * _SECONDS * 1_000_000 + spread
    table = pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "key": keys,
            "value": rng.integers(0, 1000, len(keys)),
        }
    )
    pq.write_table(table, folder / f"{epoch:05}.parquet", compression="zstd", compression_level=1)


class _Running(ps.Processor):
    """For each key the number of its rows, and the sum of a costly digest of their values."""

    def step(self, block: ps.Block) -> ps.Outcome:
        values = block.rows["value"].to_numpy()
        digests = np.fromiter(map(_digest, values.tolist()), np.int64, len(values))
        n = np.diff(np.append(block.first, len(values))) + block.state["n"].fill_null(0).to_numpy()
        total = np.add.reduceat(digests, block.first) + block.state["total"].fill_null(0).to_numpy()
        after = pa.table({"n": n, "total": total})
        return ps.Outcome(after, block.last, after)


def _digest(value: int) -> int:
    """About 15 microseconds: user code that no engine can look into."""
    text = value.to_bytes(8)
    for _ in range(_ROUNDS):
        text = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(text) >> 33


def _rows(folder: Path, name: str) -> ps.Stream:
    return ps.stream(name, _DDL, time="time", source=ps.files(str(folder / name), files_per_epoch=1))


def _windows(folder: Path) -> ps.Relation:
    grouped = _rows(folder, "rows").group_by("key").window("2 seconds")
    return grouped.agg(rows=ps.count(), total=ps.sum("value"), top=ps.max("value"))


def _outer_join(folder: Path) -> ps.Relation:
    left, right = _rows(folder, "left"), _rows(folder, "right")
    return left.join(
        right,
        "key",
        within="3 seconds",
        how="left",
        condition="abs(l.value - r.value) < 2",
        suffixes=("", "_right"),
    )


def _process(folder: Path) -> ps.Relation:
    return (
        _rows(folder, "rows")
        .group_by("key")
        .process(_Running(), state="n bigint, total bigint", result="n bigint, total bigint", order="arrival")
    )


CASES: Mapping[str, Callable[[Path], ps.Relation]] = {
    "windows": _windows,
    "outer join": _outer_join,
    "process": _process,
}


@dataclass
class _Watch:
    """Sees the end of every epoch and the cost of its channels; asks for nothing."""

    ends: list[float] = field(default_factory=list)
    costs: list[tuple[float, ...]] = field(default_factory=list)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        self.ends.append(time.perf_counter())
        self.costs.append(tuple(each.cpu_seconds for each in seen.stages[0].channels))
        return []


@dataclass(frozen=True)
class Ran:
    """One run: what it cost, what it delivered, its channels over time, and what it moved."""

    cost: Cost
    delivered: Delivered
    watch: _Watch
    moves: int
    moved_bytes: int
    move_s: float

    def settled(self, size: HotSets) -> list[float]:
        """For each hot set the busiest channel over the mean, from the epoch on by which it must be even."""
        found = []
        for start in range(0, size.epochs * size.sets, size.epochs):
            loads = np.array(self.watch.costs[start + size.settled : start + size.epochs]).sum(axis=0)
            found.append(float(loads.max() / loads.mean()))
        return found

    def standstill(self) -> float:
        """How much longer the longest epoch took than the median one."""
        took = gaps(self.watch.ends)
        return max(took) - float(np.median(took))


def skew(
    *, seed: int = 7, quick: bool = False, keys: Path | None = None, size: HotSets | None = None
) -> Report:
    """Measure every way over every case; `keys` is a file of real keys in the order of their arrival."""
    size = size or (QUICK if quick else FULL)
    spark = slotted_session(CHANNELS, quick=quick)
    rows: list[dict[str, Value]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="penstock-skew-", ignore_cleanup_errors=True) as scratch:
        for exponent in size.skews:
            folder = Path(scratch) / f"zipf-{exponent}"
            size.write(folder / "rows", exponent, size.rows, seed)
            for place, side in enumerate(("left", "right")):
                size.write(folder / side, exponent, size.join_rows, seed + place + 1)
            for case in size.cases:
                ran = {way: _run(spark, case, way, folder) for way in size.ways}
                rows += [_row(f"{case}, Zipf {exponent}", way, each, size) for way, each in ran.items()]
                checks += _checks(case, exponent, ran, size)
        if size.quiet_epochs:
            quiet = _quiet(spark, Path(scratch) / "quiet", size, seed)
            rows.append(_row("process, uniform keys", ON, quiet, None))
            checks.append(
                Check(
                    f"moves in {size.quiet_epochs} epochs of uniform keys",
                    quiet.moves,
                    "a quiet stream is left alone",
                    ceiling=0,
                )
            )
        if keys is not None:
            ran = _real(spark, keys, Path(scratch) / "real", size)
            rows += [_row("process, real keys", way, each, None) for way, each in ran.items()]
            checks += _real_checks(ran, size)
    return report_here("skew", seed, rows, checks)


def _run(spark: SparkSession, case: str, way: str, folder: Path) -> Ran:
    watch = _Watch()
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
        out = Path(place) / "out"
        runs: list[ps.Run] = []

        def work() -> None:
            run = CASES[case](folder).start(
                ps.parquet(str(out)),
                checkpoint=str(Path(place) / "state"),
                channels=CHANNELS,
                session=spark,
                policy=watch,
                control=WAYS[way][0],
                partitioning=WAYS[way][1],
            )
            runs.append(run)
            run.wait(live=False)

        cost = cost_of(spark, work)
        moved = [each for each in runs[0].decisions if each.rows]
        ran = Ran(
            cost,
            rows_delivered(out),
            watch,
            len(moved),
            sum(each.bytes for each in moved),
            sum(each.seconds for each in moved),
        )
    say(f"{case}, {way}: {cost.wall_s:.0f} s, {cost.cpu_s:.0f} CPU s, {ran.moves} moves")
    return ran


def _row(case: str, way: str, ran: Ran, size: HotSets | None) -> dict[str, Value]:
    settled = [] if size is None else ran.settled(size)
    return {
        "engine": "penstock",
        "case": case,
        "way": way,
        "busiest_over_mean": " ".join(f"{each:.2f}" for each in settled),
        "moves": ran.moves,
        "moved_mb": round(ran.moved_bytes / 1e6, 2),
        "move_s": round(ran.move_s, 2),
        "longest_over_median_s": round(ran.standstill(), 2),
        "cpu_s": round(ran.cost.cpu_s, 1),
        "wall_s": round(ran.cost.wall_s, 1),
    }


def _best(case: str, exponent: float) -> float:
    """The least that busiest over mean can be: a keyed function cannot have a key in two channels."""
    return max(1.0, float(zipf_shares(KEYS, exponent)[0]) * CHANNELS) if case == "process" else 1.0


def _checks(case: str, exponent: float, ran: Mapping[str, Ran], size: HotSets) -> list[Check]:
    best = _best(case, exponent)
    ceiling = CEILING if best == 1.0 else round(best * NEAR_BEST, 3)
    worst = max(ran[ON].settled(size))
    same = float(ran[ON].delivered == ran[OFF].delivered)
    named = f"{case}, Zipf {exponent}"
    return [
        Check(
            f"busiest over mean {size.settled} epochs after an exchange, {named}",
            round(worst, 3),
            "promised for a run that nobody touches",
            ceiling=ceiling,
            unjudged=size.unjudged,
        ),
        Check(f"same results as without control, {named}", same, "control changes no result", floor=1),
    ]


def _quiet(spark: SparkSession, folder: Path, size: HotSets, seed: int) -> Ran:
    """The keyed function over keys that are all alike, with control on."""
    rng = np.random.default_rng(seed)
    (folder / "rows").mkdir(parents=True)
    for epoch in range(size.quiet_epochs):
        _write(folder / "rows", epoch, rng.integers(0, KEYS, size.quiet_rows), rng)
    return _run(spark, "process", ON, folder)


def _real(spark: SparkSession, keys: Path, folder: Path, size: HotSets) -> dict[str, Ran]:
    """The keyed function over real keys in the order of arrival; the faster of two runs each, in turn."""
    given = np.loadtxt(keys, dtype=np.int64)[: size.rows * size.epochs * size.sets]
    rng = np.random.default_rng(1)
    (folder / "rows").mkdir(parents=True)
    for epoch, start in enumerate(range(0, len(given), size.rows)):
        _write(folder / "rows", epoch, given[start : start + size.rows], rng)
    ran: dict[str, Ran] = {}
    for way in (OFF, ON, ON, OFF):
        found = _run(spark, "process", way, folder)
        if way not in ran or found.cost.wall_s < ran[way].cost.wall_s:
            ran[way] = found
    return ran


def _real_checks(ran: Mapping[str, Ran], size: HotSets) -> Sequence[Check]:
    ratio = ran[ON].cost.wall_s / ran[OFF].cost.wall_s
    return [
        Check(
            "wall time with control over that without, real keys",
            round(ratio, 3),
            "never worse than plain hashing; two runs differ by some percent",
            ceiling=1.05,
            unjudged=size.unjudged,
        ),
        Check(
            "same results as without control, real keys",
            float(ran[ON].delivered == ran[OFF].delivered),
            "control changes no result",
            floor=1,
        ),
    ]
