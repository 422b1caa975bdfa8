"""`penstock bench subkeys`: how evenly user code over hot keys falls on the channels of a cluster.

A class aggregate of about 20 microseconds a row runs over skewed keys on eight channels of a standalone
cluster with one-core executors: with keys whole, by a plain and by a consistent hash, and with hot keys split
into sub-keys ([000] §4.1). Figures are per channel, over all epochs but the first, which measures the
frequencies: the rows that a channel formed partials of, and its processor time for forming, merging and
closing windows. Processor time, since eight executors may share fewer cores.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import penstock as ps
from penstock_lab.bench.cluster import standalone_cluster
from penstock_lab.bench.sub_key_data import SubKeyData
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["Digest", "WholeDigest", "sub_keys"]

CHANNELS = 8
CEILING = 1.15
QUICK_ROWS = 20_000
QUICK_EPOCHS = 3
QUICK_EXECUTORS = 2  # each is a JVM that takes several seconds of processor time to start
_ROUNDS = 48  # about 20 microseconds


class Digest(ps.ArrowAggregate):
    """The sum of a costly digest of each value: user code that no engine can look into."""

    state = {"total": "bigint"}  # noqa: RUF012 -- as users write it
    result = "bigint"
    split = True

    def accumulate(self, groups: Any, n: int, *columns: pa.Array) -> pa.RecordBatch:
        """One Python call a row."""
        digests = np.fromiter(map(_digest, columns[0].to_numpy().tolist()), np.int64, len(groups))
        total = np.zeros(n, np.int64)
        np.add.at(total, groups, digests)
        return pa.record_batch({"total": total})

    def merge(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """Sums add up."""
        return pa.record_batch({"total": left["total"].to_numpy() + right["total"].to_numpy()})

    def finish(self, state: pa.RecordBatch) -> pa.Array:
        """The sum."""
        return state["total"]


class WholeDigest(Digest):
    """The same with every key whole."""

    split = False


@dataclass(frozen=True)
class Way:
    """A way to share out the work: the aggregate, and options of the run."""

    name: str
    aggregate: type[Digest]
    options: Mapping[str, str]


WAYS = (
    Way("plain hash", WholeDigest, {"partitioning": "uniform"}),
    Way("consistent hash", WholeDigest, {"partitioning": "consistent"}),
    Way("sub-keys", Digest, {"partitioning": "consistent"}),
)


@dataclass(frozen=True)
class Outcome:
    """What each channel did, and what came out."""

    rows: NDArray[np.float64]
    cpu_s: NDArray[np.float64]
    epoch_s: float
    split: str
    results: Sequence[str]

    @property
    def rows_ratio(self) -> float:
        """The rows of the busiest channel over the mean."""
        return float(self.rows.max() / self.rows.mean())

    @property
    def cpu_ratio(self) -> float:
        """The processor time of the busiest channel over the mean."""
        return float(self.cpu_s.max() / self.cpu_s.mean())


def sub_keys(
    *, rows: int = 50_000, epochs: int = 6, keys: Path | None = None, seed: int = 7, quick: bool = False
) -> Report:
    """Measure all ways on epochs of `rows` rows; `keys`: a file of real keys.

    `quick` takes fewer rows, epochs and executors, on as many channels.
    """
    if quick:
        rows, epochs = min(rows, QUICK_ROWS), min(epochs, QUICK_EPOCHS)
    data = SubKeyData(rows, epochs, seed, keys)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        folder = data.write(Path(scratch) / "data")
        with standalone_cluster(QUICK_EXECUTORS if quick else CHANNELS) as session:
            outcomes = {way.name: _measured(session, way, folder, Path(scratch)) for way in WAYS}
    table = [_row(data, name, outcome) for name, outcome in outcomes.items()]
    return report_here("subkeys", seed, table, _checks(data, outcomes))


def _measured(session: SparkSession, way: Way, folder: Path, scratch: Path) -> Outcome:
    say(way.name)
    source = ps.files(folder, files_per_epoch=1)
    stream = ps.stream("calls", "time timestamp, key string, value bigint", "time", source=source)
    query = (
        stream.group_by("key")
        .window("10 seconds", slide="5 seconds")
        .agg(n=ps.count(), digest=way.aggregate("value"))
    )
    sink = ps.memory()
    options: dict[str, Any] = {"channels": CHANNELS, "session": session, **way.options}
    run = query.start(sink, checkpoint=str(scratch / way.name.replace(" ", "-")), **options)
    run.wait()
    taken = [epoch for epoch in run.progress[1:] if epoch.rows]
    work = [epoch.stages[0].channels for epoch in taken]
    return Outcome(
        np.sum([[each.rows for each in epoch] for epoch in work], axis=0, dtype=np.float64),
        np.sum([[each.cpu_seconds for each in epoch] for epoch in work], axis=0),
        float(np.median([epoch.seconds for epoch in taken])),
        taken[-1].stages[0].split,
        sorted(map(str, sink.table().to_pylist())),
    )


def _row(data: SubKeyData, name: str, outcome: Outcome) -> dict[str, Value]:
    say(f"{name}: {outcome.split or 'keys whole'}")
    return {
        "case": data.name,
        "way": name,
        "rows": int(outcome.rows.sum()),
        "busiest_rows": int(outcome.rows.max()),
        "rows_over_mean": round(outcome.rows_ratio, 3),
        "busiest_cpu_s": round(float(outcome.cpu_s.max()), 3),
        "cpu_over_mean": round(outcome.cpu_ratio, 3),
        "cpu_us_per_row": round(float(outcome.cpu_s.sum() / outcome.rows.sum()) * 1e6, 2),
        "epoch_s": round(outcome.epoch_s, 3),
        "split": outcome.split,
    }


def _checks(data: SubKeyData, outcomes: Mapping[str, Outcome]) -> list[Check]:
    split = outcomes["sub-keys"]
    others = [each for name, each in outcomes.items() if name != "sub-keys"]
    figures = {"rows formed": split.rows_ratio, "processor time": split.cpu_ratio}
    promised = "promised for user code over hot keys"
    checks = [
        Check(
            f"{what}, busiest of {CHANNELS} channels over the mean, {data.name}",
            round(value, 3),
            promised,
            ceiling=CEILING,
        )
        for what, value in figures.items()
    ]
    same = sum(each.results == split.results for each in others)
    return [*checks, Check("ways with the results of sub-keys", same, "exactness", floor=len(others))]


def _digest(value: int) -> int:
    held = value.to_bytes(8, "little")
    for _ in range(_ROUNDS):
        held = hashlib.blake2b(held, digest_size=8).digest()
    return int.from_bytes(held[:4], "little")
