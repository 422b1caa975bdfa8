"""`penstock bench splits`: how much more a tuple costs with the splits of [000] than with plain routing.

The split stage is what a run does with rows between two stages: a placer says on Arrow where they go, and
they pass through the exchange to channels, which do nothing with them. Both ways take turns over the same
files; their cost is the processor time of Spark and its workers, and the overhead is the median over the
rounds of the one divided by the other. The paper measured 17 % for frequency-aware and 4 % for rate-aware
partitioning ([000] §6.4.4) with the upkeep of the statistics; here the statistics are not part of the stage.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.distribution.by_key import KeyPlacer
from penstock.distribution.dealing import ByPane
from penstock.distribution.distribution import Placed, Placer
from penstock.distribution.sub_keys import BySubKey
from penstock.routing import PaneHistory, RatePanes, Ring, plan_panes, split_hot_keys, split_panes
from penstock.routing.spark_hash import spark_hash
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.split_data import PANE, SplitData
from penstock_lab.exchange import Exchanging, Taken
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["splits"]

CHANNELS = 16
HOT_KEYS = 200
QUICK_ROWS = 200_000
QUICK_REPEATS = 3
QUICK_UNJUDGED = (
    f"the median of {QUICK_REPEATS} rounds over {QUICK_ROWS:,} rows is uncertain by more than the ceiling"
)
STAGE, ALONE = "split stage", "placement alone"

_TASKS = 2

_Open = Callable[[int], Placer]
_Job = Callable[[_Open], Taken]


@dataclass(frozen=True)
class Split:
    """A split with plain routing of the same kind, and the most that it may cost on top."""

    name: str
    plain: _Open
    aware: _Open
    ceiling: float


@dataclass
class ByRate:
    """Rows of a pane go to its channel, or to several in turn if it is large ([000] §4.2)."""

    router: RatePanes
    _passed: int = 0

    @property
    def channels(self) -> int:
        """Those of the router."""
        return self.router.channels

    def place(self, rows: Any) -> Placed:
        """By the number of the pane, and of the row."""
        numbers = np.arange(self._passed, self._passed + rows.num_rows)
        self._passed += rows.num_rows
        return None, self.router.route(rows["pane"].to_numpy(), numbers)


def splits(*, rows: int = 10_000_000, repeats: int = 5, seed: int = 7, quick: bool = False) -> Report:
    """Measure both splits; `quick`: fewer rows and rounds."""
    if quick:
        rows, repeats = min(rows, QUICK_ROWS), min(repeats, QUICK_REPEATS)
    data = SplitData(rows, seed)
    table: list[Mapping[str, Value]] = []
    checks: list[Check] = []
    say(f"{data.rows:,} rows")
    exchanging = Exchanging(measuring_session(quick=quick))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        files = Files(_with_panes(data.write(Path(scratch))))
        jobs: dict[str, _Job] = {
            STAGE: lambda placer: exchanging.take(files, placer, CHANNELS, _TASKS),
            ALONE: files.placed,
        }
        for split in (_by_key(data), _by_pane(data)):
            for measure, job in jobs.items():
                plain, aware = _take_turns(split, job, repeats)
                assert all(each.rows == data.rows for each in (*plain, *aware)), "every row goes somewhere"
                table += _rows(split, measure, data.rows, plain, aware)
                if measure == STAGE:
                    checks.append(_check(split, plain, aware, QUICK_UNJUDGED if quick else ""))
    return report_here("splits", seed, table, checks)


def _by_key(data: SplitData) -> Split:
    ring = Ring(CHANNELS)
    hashes = spark_hash([pa.array(np.arange(HOT_KEYS))], HOT_KEYS)
    router = split_hot_keys(hashes, data.frequencies[:HOT_KEYS], ring)
    return Split(
        "frequency-aware keys",
        lambda _: KeyPlacer(("key",), ring.arrays, CHANNELS),
        lambda task: BySubKey(("key",), router, task),
        ceiling=0.17,
    )


def _by_pane(data: SplitData) -> Split:
    shares, _ = split_panes(PaneHistory.start(CHANNELS), data.sizes)
    router = plan_panes(0, shares)
    return Split(
        "rate-aware panes", lambda _: ByPane("pane", CHANNELS), lambda _: ByRate(router), ceiling=0.04
    )


def _with_panes(folder: Path) -> tuple[str, ...]:
    """Files of the same rows with the number of their pane, which are mapped into memory."""
    found = []
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path).combine_chunks()
        table = table.append_column("pane", pa.array(table["time"].to_numpy() // PANE))
        found.append(str(path.with_suffix(".arrow")))
        with pa.ipc.new_file(found[-1], table.schema) as file:
            file.write_table(table)
    return tuple(found)


@dataclass(frozen=True)
class Files:
    """Rows in files, of which tasks take turns."""

    paths: tuple[str, ...]

    def __call__(self, task: int) -> Iterator[Any]:
        """The tables of a task."""
        for path in self.paths[task::_TASKS]:
            with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
                yield file.read_all()

    def placed(self, placer: _Open) -> Taken:
        """What it takes only to say where all rows go, on one core."""
        tables = [table for task in range(_TASKS) for table in self(task)]
        opened, wall, cpu = placer(0), time.perf_counter(), time.process_time()
        rows = sum(len(opened.place(table)[1]) for table in tables)
        return Taken(time.perf_counter() - wall, time.process_time() - cpu, rows)


def _take_turns(split: Split, job: _Job, repeats: int) -> tuple[list[Taken], list[Taken]]:
    """Both ways in turn, in alternating order; two rounds before them warm the JVM and the workers."""
    taken: tuple[list[Taken], list[Taken]] = ([], [])
    for turn in range(-2, repeats):
        order = (0, 1) if turn % 2 else (1, 0)
        for way in order:
            cost = job((split.plain, split.aware)[way])
            if turn >= 0:
                taken[way].append(cost)
    return taken


def _ratios(plain: list[Taken], aware: list[Taken]) -> list[float]:
    return [more.cpu_s / less.cpu_s - 1 for less, more in zip(plain, aware, strict=True)]


def _rows(
    split: Split, measure: str, rows: int, plain: list[Taken], aware: list[Taken]
) -> list[dict[str, Value]]:
    ratios = _ratios(plain, aware)
    say(f"{split.name}, {measure}: {median(ratios):+.1%}, from {min(ratios):+.1%} to {max(ratios):+.1%}")
    over = {"overhead": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    return [
        {
            "split": split.name,
            "measure": measure,
            "route": name,
            "cpu_ns": round(median(each.cpu_s for each in costs) / rows * 1e9, 1),
            "wall_ns": round(median(each.wall_s for each in costs) / rows * 1e9, 1),
            **{each: round(ratio, 4) if costs is aware else None for each, ratio in over.items()},
            "rounds": len(costs),
        }
        for name, costs in (("plain", plain), ("aware", aware))
    ]


def _check(split: Split, plain: list[Taken], aware: list[Taken], unjudged: str) -> Check:
    return Check(
        f"{split.name}: cost of a tuple above plain routing",
        round(median(_ratios(plain, aware)), 4),
        "[000] §6.4.4",
        ceiling=split.ceiling,
        unjudged=unjudged,
    )
