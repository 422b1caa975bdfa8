"""`penstock bench shuffle`: a function whose cost depends on the value, under every way to place its rows.

Values are drawn by Zipf 1.5, and a row costs 1 to 100 units by its value ([001] §5), 48 microseconds each: an
exchange costs a tenth of a second and more, which cheaper rows could not pay. The function runs
without an exchange, on rows dealt out round robin, on eight times as many small round-robin tasks, by cost,
and as the policy decides by itself. Rows lie evenly over the source's files, or each file has values of its
own. In a third workload all values cost the same, so no exchange by cost can pay.

Two figures count. The epoch time is by the clock, of the stage with its map side. The makespan is from the
processor time of each task, placed on the slots as Spark places tasks: as if each slot had a core of its own.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import penstock as ps
from penstock.control.observation import Grouped
from penstock.routing import greedy
from penstock_lab.bench.cost import Cost, cost_of
from penstock_lab.bench.results import Delivered, rows_delivered
from penstock_lab.bench.session import slotted_session
from penstock_lab.reports import Check, Report, Value, report_here, say
from penstock_lab.reports.machine import cores
from penstock_lab.workloads import draw, zipf_shares

__all__ = ["FULL", "QUICK", "ShuffleSize", "shuffle"]

VALUES, EXPONENT, DEAREST = 4096, 1.5, 100
MORE = 8
"""Small tasks for each channel, in the baseline that leaves balancing to Spark's queue of tasks."""
PLAIN, STAYS, DEALT, SMALL, PLACED, ITSELF = (
    "plain map",
    "no exchange",
    "round robin",
    f"{MORE} k small tasks",
    "by cost",
    "by itself",
)
WAYS = (PLAIN, STAYS, DEALT, SMALL, PLACED, ITSELF)
MIXED, APART, EQUAL = "values mixed", "values apart", "equal costs"
_DDL = "time timestamp, value bigint, cost bigint"
_BYTES = 12_000
"""Bytes that are digested for one unit of cost: about 12 microseconds."""
_START = 1_700_000_000_000_000
_FOOD = memoryview(bytes(_BYTES * DEAREST))


@dataclass(frozen=True)
class ShuffleSize:
    """How much is run: rows of an epoch, epochs, of which the second half counts, and what is compared."""

    rows: int = 2000
    epochs: int = 16
    unit: int = 4
    """Units of 12 microseconds that the cheapest row costs."""
    cases: tuple[str, ...] = (MIXED, APART, EQUAL)
    ways: tuple[str, ...] = WAYS
    unjudged: str = ""

    def write(self, folder: Path, case: str, files: int, seed: int) -> Path:
        """So many files for each epoch."""
        rng = np.random.default_rng(seed)
        shares, costs = zipf_shares(VALUES, EXPONENT), rng.integers(1, DEAREST + 1, VALUES)
        if case == EQUAL:
            costs = np.full(VALUES, DEAREST // 4)
        folder.mkdir(parents=True)
        for epoch in range(self.epochs):
            values = draw(rng, shares, self.rows)
            if case == APART:
                values = np.sort(values)
            for place, part in enumerate(np.array_split(values, files)):
                _write(folder / f"{epoch:05}-{place:03}.parquet", part, self.unit * costs[part], epoch)
        return folder


FULL = ShuffleSize()
QUICK = ShuffleSize(
    rows=300,
    epochs=5,
    unit=1,
    cases=(APART, EQUAL),
    ways=(STAYS, DEALT, SMALL, PLACED, ITSELF),
    unjudged="epochs of so few rows end before an exchange can pay; the bounds are for 2,000 dearer rows",
)


def _write(path: Path, values: NDArray[np.int64], costs: NDArray[np.int64], epoch: int) -> None:
    times = _START + epoch * 1_000_000 + np.arange(len(values))
    table = pa.table({"time": pa.array(times, pa.timestamp("us", tz="UTC")), "value": values, "cost": costs})
    pq.write_table(table, path, compression="zstd")


def digested(batch: Any) -> Any:
    """A digest of as many bytes as a row's cost says: work that no engine can look into."""
    digests = [_digest(*divmod(cost * _BYTES, len(_FOOD))) for cost in batch["cost"].to_pylist()]
    return pa.record_batch({"value": batch["value"], "digest": pa.array(digests, pa.int64())})


def _digest(times: int, size: int) -> int:
    state = hashlib.blake2b(digest_size=6)
    for _ in range(times):
        state.update(_FOOD)
    state.update(_FOOD[:size])
    return int.from_bytes(state.digest())


def _mapped(folder: Path, files: int, **given: Any) -> ps.Relation:
    source = ps.files(str(folder), files_per_epoch=files)
    return ps.stream("rows", _DDL, time="time", source=source).map(
        digested, "value bigint, digest bigint", **given
    )


_GIVEN: Mapping[str, Mapping[str, Any]] = {
    PLAIN: {},
    STAYS: {"by": "value"},
    DEALT: {"channels": True},
    SMALL: {"channels": True},
    PLACED: {"by": "value", "channels": True},
    ITSELF: {"by": "value"},
}


@dataclass
class _Watch:
    """Keeps what each epoch measured of the stage; asks for nothing."""

    seen: list[Grouped] = field(default_factory=list)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        self.seen += [each.grouped for each in seen.stages if each.grouped is not None]
        return []


@dataclass(frozen=True)
class Ran:
    """One run: what it cost and delivered, the stage in each epoch, the epochs by the clock, and rulings."""

    cost: Cost
    delivered: Delivered
    seen: Sequence[Grouped]
    epochs: Sequence[float]
    rulings: Sequence[str]

    def epoch_s(self) -> float:
        """The median time of the measured epochs, map side and channels."""
        return float(np.median(self.epochs[len(self.epochs) // 2 :]))

    def makespan_s(self, slots: int) -> float | None:
        """The mean makespan of the measured epochs with a core for each slot."""
        found = [_makespan(each.tasks, slots) for each in self._measured]
        return float(np.mean(found)) if found else None

    def over_best(self, slots: int) -> float | None:
        """The same over the least that any placement could reach."""
        found = [_makespan(each.tasks, slots) * slots / sum(each.tasks) for each in self._measured]
        return float(np.mean(found)) if found else None

    @property
    def groupings(self) -> list[str]:
        """How rows found their channel in the measured epochs."""
        return list(dict.fromkeys(each.grouping for each in self._measured))

    @property
    def _measured(self) -> Sequence[Grouped]:
        return self.seen[len(self.seen) // 2 :]


def _makespan(tasks: Sequence[float], slots: int) -> float:
    return greedy(np.array(tasks), np.zeros(slots)).makespan


def shuffle(
    *, channels: int | None = None, seed: int = 7, quick: bool = False, size: ShuffleSize | None = None
) -> Report:
    """Measure every way over every workload, on as many slots as channels."""
    size = size or (QUICK if quick else FULL)
    slots = channels or cores()
    spark = slotted_session(slots, quick=quick)
    rows: list[dict[str, Value]] = []
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="penstock-shuffle-", ignore_cleanup_errors=True) as scratch:
        for case in size.cases:
            folder = size.write(Path(scratch) / case.replace(" ", "-"), case, slots, seed)
            if case == size.cases[0] and not size.unjudged:
                _run(spark, PLAIN, folder, slots)  # until Spark is warm
            ran = {way: _run(spark, way, folder, slots) for way in size.ways}
            rows += [_row(case, way, each, slots) for way, each in ran.items()]
            checks += _checks(case, ran, slots, size)
    return report_here("shuffle", seed, rows, checks)


def _run(spark: SparkSession, way: str, folder: Path, slots: int) -> Ran:
    watch = _Watch()
    with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as place:
        out = Path(place) / "out"
        runs: list[ps.Run] = []

        def work() -> None:
            run = _mapped(folder, slots, **_GIVEN[way]).start(
                ps.parquet(str(out)),
                checkpoint=str(Path(place) / "state"),
                channels=slots * (MORE if way == SMALL else 1),
                session=spark,
                policy=watch,
                control="on" if way == ITSELF else "off",
            )
            runs.append(run)
            run.wait(live=False)

        cost = cost_of(spark, work)
        # A plain map runs where its results are written.
        phases = ("map", "channels", "deliver") if way == PLAIN else ("map", "channels")
        epochs = [
            sum(each.phases.get(name, 0.0) for name in phases) for each in runs[0].progress if each.rows
        ]
        rulings = [each.words() for each in runs[0].rulings]
        ran = Ran(cost, rows_delivered(out), watch.seen, epochs, rulings)
    say(f"{folder.name}, {way}: {ran.epoch_s():.2f} s an epoch, {cost.cpu_s:.0f} CPU s")
    for each in rulings:
        say(f"  {each}")
    return ran


def _row(case: str, way: str, ran: Ran, slots: int) -> dict[str, Value]:
    return {
        "engine": "penstock",
        "case": case,
        "way": way,
        "grouping": ", ".join(ran.groupings),
        "epoch_s": round(ran.epoch_s(), 3),
        "makespan_s": _rounded(ran.makespan_s(slots)),
        "over_best": _rounded(ran.over_best(slots)),
        "cpu_s": round(ran.cost.cpu_s, 1),
        "wall_s": round(ran.cost.wall_s, 1),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _checks(case: str, ran: Mapping[str, Ran], slots: int, size: ShuffleSize) -> list[Check]:
    same = {each.delivered for each in ran.values()}
    found = [
        Check(f"different results of {len(ran)} ways, {case}", len(same), "placing changes no row", ceiling=1)
    ]
    if case == EQUAL:
        stays = float(ran[ITSELF].groupings == ["in place"])
        return [*found, Check(f"no exchange in the end, {case}", stays, "used only where it pays", floor=1)]
    if case == APART and ITSELF in ran:
        switched = float("in place" not in ran[ITSELF].groupings)
        source = "used where it pays"
        found.append(
            Check(f"an exchange in the end, {case}", switched, source, floor=1, unjudged=size.unjudged)
        )
    times = {way: each.makespan_s(slots) or float("nan") for way, each in ran.items()}
    return found + [
        Check(
            f"makespan by cost over {other}, {case}",
            round(times[PLACED] / times[other], 3),
            "rows placed by cost, its samples included, each slot with a core of its own",
            ceiling=ceiling,
            unjudged=size.unjudged,
        )
        for other, ceiling in ((STAYS, 1.0), (DEALT, 1.0), (SMALL, 1.05))
        if other in ran
    ]
