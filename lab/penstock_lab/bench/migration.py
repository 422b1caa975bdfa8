"""`penstock bench migration`: what a change of channels moves, and how even it leaves them.

A live run keeps every tuple of a skewed stream as state of its key, as a side of a join does while the other
is silent, and is rescaled 4 -> 5 -> ... -> 10 -> 6. Bytes moved are those of the rows that other channels
have from then on, estimated; the ideal is the least that any assignment has to move: the share of a new
channel, or all that the removed channels hold. Imbalance is most over least, of state in bytes and of tuples
of an epoch.
"""

import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import penstock as ps
from penstock.errors import RunError
from penstock.query import PartitioningName
from penstock_lab.bench.data import START_US, zipf
from penstock_lab.bench.session import measuring_session
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["STEPS", "migration", "read_keys"]

STEPS = (4, 5, 6, 7, 8, 9, 10, 6)
"""The numbers of channels, one after another."""

_MOST_MOVED, _MOST_UNEVEN = 1.35, 1.25
_SOURCE = "promised for balanced"
_SCHEMA = "time timestamp not null, key bigint not null"
_DISTINCT = 1_000_000
_LATER = 0.04  # of the rows in each epoch after the first, in which tuples are counted
_TIMEOUT = 1800
_QUICK_ROWS = 100_000
_QUICK_UNJUDGED = (
    f"epochs have {int(_QUICK_ROWS * _LATER):,} tuples, so chance alone makes ten channels differ by "
    "about 15 %"
)


def migration(
    *,
    rows: int = 4_000_000,
    keys: Path | None = None,
    partitionings: tuple[PartitioningName, ...] = get_args(PartitioningName),
    seed: int = 7,
    quick: bool = False,
) -> Report:
    """Rescale a run by each partitioning function (`quick`: 100,000 rows)."""
    rows = min(rows, _QUICK_ROWS) if quick else rows
    drawn = zipf(np.random.default_rng(seed), rows, _DISTINCT) if keys is None else read_keys(keys)[:rows]
    name = f"Zipf 1.0 over {_DISTINCT:,} keys" if keys is None else keys.name
    say(f"{len(drawn):,} tuples, {name}")
    measuring_session(quick=quick)
    measured: list[dict[str, Value]] = []
    with tempfile.TemporaryDirectory(prefix="penstock-migration-") as folder:
        _write(Path(folder) / "in", drawn)
        (Path(folder) / "silent").mkdir()
        for partitioning in partitionings:
            say(partitioning)
            measured += _rescaled(Path(folder), partitioning)
    ours = [row for row in measured if row["engine"] == "balanced"]
    return report_here("migration", seed, measured, _checks(ours, name, _QUICK_UNJUDGED if quick else ""))


def read_keys(path: Path) -> NDArray[np.int64]:
    """Whole numbers, one a line, from a text file that may be compressed."""
    with pa.input_stream(str(path), compression="detect") as stream:
        table = pa.csv.read_csv(stream, pa.csv.ReadOptions(column_names=["key"]))
    if table.schema.field("key").type != pa.int64():
        raise RunError(f"keys in {path} are {table.schema.field('key').type}; give one whole number a line")
    return np.asarray(table["key"].to_numpy(), np.int64)


def _write(folder: Path, keys: NDArray[np.int64]) -> None:
    """One large epoch that builds the state, then a small one for each number of channels."""
    folder.mkdir()
    later = int(len(keys) * _LATER)
    cuts = len(keys) - later * np.arange(len(STEPS) - 1, -1, -1)
    for number, (start, end) in enumerate(zip([0, *cuts[:-1]], cuts, strict=True)):
        times = pa.array(START_US + np.arange(start, end), pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"time": times, "key": keys[start:end]}), folder / f"{number:04d}.parquet")


@dataclass
class _Schedule:
    """Asks for the next number of channels after each epoch, and remembers what it saw."""

    partitioning: str
    seen: list[ps.StageChannels] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, seen: ps.Observation) -> list[ps.Rescale]:
        self.seen.append(seen.stages[0])
        if len(self.seen) == len(STEPS):
            self.over.set()
            return []
        return (
            [ps.Rescale(0, STEPS[len(self.seen)], self.partitioning)] if len(self.seen) < len(STEPS) else []
        )


def _rescaled(folder: Path, partitioning: PartitioningName) -> list[dict[str, Value]]:
    taken = ps.stream(
        "taken", _SCHEMA, time="time", source=ps.files(folder / "in", files_per_epoch=1, live=True)
    )
    silent = ps.stream("silent", _SCHEMA, time="time", source=ps.files(folder / "silent", live=True))
    # A full outer join keeps each key whole; another one would spread hot keys over several channels.
    query = taken.join(silent, "key", within="1 day", how="full", suffixes=("", "_2"))
    schedule = _Schedule(partitioning)
    with tempfile.TemporaryDirectory(prefix="penstock-migration-") as checkpoint:
        run = query.start(
            ps.memory(),
            checkpoint=checkpoint,
            channels=STEPS[0],
            partitioning=partitioning,
            resources={0: "LLL"},
            most_moved=1 << 40,
            control="off",
            policy=schedule,
        )
        if not schedule.over.wait(_TIMEOUT):
            run.stop()
            raise RunError(
                f"{partitioning}: only {len(schedule.seen)} of {len(STEPS)} epochs in {_TIMEOUT} s"
            )
        run.stop()
        decisions = run.decisions
    return [
        _row(decision, before, after)
        for decision, before, after in zip(decisions, schedule.seen, schedule.seen[1:], strict=False)
    ]


def _row(decision: ps.Decision, before: ps.StageChannels, after: ps.StageChannels) -> dict[str, Value]:
    state = [each.state_bytes for each in before.channels]
    grows = decision.after > decision.before
    share = (decision.after - decision.before) / decision.after
    ideal = share * sum(state) if grows else sum(state[decision.after :])
    return {
        "engine": decision.partitioning,
        "case": f"{decision.before} -> {decision.after} channels",
        "state_mb": round(sum(state) / 1e6, 2),
        "moved_mb": round(decision.bytes / 1e6, 3),
        "moved_rows": decision.rows,
        "moved_over_ideal": round(decision.bytes / ideal, 3),
        "state_imbalance": round(after.imbalance[0], 3),
        "tuple_imbalance": round(after.imbalance[2], 3),
        "move_s": round(decision.seconds, 3),
    }


def _checks(rows: list[dict[str, Value]], name: str, unjudged: str) -> list[Check]:
    def worst(column: str) -> float | None:
        return max((float(row[column] or 0) for row in rows), default=None)

    return [
        Check(f"bytes moved over the ideal, {name}", worst("moved_over_ideal"), _SOURCE, ceiling=_MOST_MOVED),
        Check(f"imbalance of state, {name}", worst("state_imbalance"), _SOURCE, ceiling=_MOST_UNEVEN),
        Check(
            f"imbalance of tuples, {name}",
            worst("tuple_imbalance"),
            _SOURCE,
            ceiling=_MOST_UNEVEN,
            unjudged=unjudged,
        ),
    ]
