"""`penstock bench rescale`: how long a stream stands still while its state goes from 4 to 8 channels.

Both engines count the rows of keys and keep the last payload of each. They fill their state, run over small
epochs at full speed, change the number of channels, and run on; rows, session and machine are the same. A gap
is the time from the end of an epoch to that of the next. The standstill is the sum, over the epochs of the
change, of how much longer their gaps are than the median of the steady ones before. Spark has to stop: its
only gap is from there to the end of the first epoch after the restart, in a JVM that keeps running.

Then Penstock alone, for keyed state, the rows of a join and panes of windows: every epoch around the change.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from penstock_lab.bench.keyed_payloads import KeyedPayloads
from penstock_lab.bench.live_rescale import AFTER, BEFORE, Rescaled, rescale_live
from penstock_lab.bench.offline_repartition import repartition_offline
from penstock_lab.bench.rescale_curve import KINDS, curve_checks, curve_of, curve_rows
from penstock_lab.bench.session import measuring_session
from penstock_lab.bench.timing import Measured as Part
from penstock_lab.errors import BadBench
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["PARTS", "rescale"]

FLOOR = 10
PARTS = ("spark", *KINDS)
"""The comparison with Spark, and the kinds of state that are followed epoch by epoch."""
STEPS, ONE_STEP, SPARK = "penstock, in steps", "penstock, in one step", "spark, offline repartition"

_QUICK_MB = 16
_QUICK_STEADY = 3
_LATER = 50
_QUICK_LATER = 10
_QUICK_UNJUDGED = (
    f"cold, with {_QUICK_MB} MB of state, the fixed cost of an epoch outweighs the move; "
    "the floor is for 1 GB"
)
_NO_BOUND = 1 << 50
_SHORTEST_S = 0.001  # of a standstill, where the ratio is taken
_SOURCE = "the floor promised against Spark on the same state and machine"

Run = Callable[[SparkSession, KeyedPayloads, list[Path], Path], Rescaled]


@dataclass(frozen=True)
class Measured:
    """One engine's change, and how long its whole run took."""

    rescaled: Rescaled
    wall_s: float


def rescale(
    *,
    state_mb: int = 1024,
    seed: int = 7,
    quick: bool = False,
    only: Sequence[str] = PARTS,
    data: KeyedPayloads | None = None,
) -> Report:
    """Measure some parts, by default all; `quick` (16 MB of state) and `data` without a warm-up."""
    for each in only:
        if each not in PARTS:
            raise BadBench(f"--only has {each!r}; give some of {', '.join(PARTS)}")
    warm = None if data or quick else KeyedPayloads(1, seed, fill_rows=10_000, epoch_rows=1000, steady=1)
    if data is None:
        small = KeyedPayloads(min(state_mb, _QUICK_MB), seed, steady=_QUICK_STEADY)
        data = small if quick else KeyedPayloads(state_mb, seed)
    say(f"{data.keys:,} keys, {data.before + data.after} epochs")
    spark = measuring_session(quick=quick)
    parts = [_compared(spark, _of(warm, data), quick=quick)] if "spark" in only else []
    parts += [_followed(spark, kind, data, quick=quick) for kind in KINDS if kind in only]
    rows = [row for part in parts for row in part.rows]
    return report_here("rescale", seed, rows, [check for part in parts for check in part.checks])


def _followed(spark: SparkSession, kind: str, data: KeyedPayloads, *, quick: bool) -> Part:
    """Penstock epoch by epoch; the steady ones are after the JVM has compiled what they need."""
    data = replace(data, later=_QUICK_LATER if quick else _LATER, steady=data.steady if quick else _LATER)
    with _folder() as scratch:
        curve = curve_of(spark, kind, data, Path(scratch))
    return Part(
        tuple(curve_rows(kind, curve)),
        tuple(curve_checks(kind, curve, _QUICK_UNJUDGED if quick else "")),
    )


def _compared(spark: SparkSession, sizes: list[KeyedPayloads], *, quick: bool) -> Part:
    """Both of Penstock's ways and Spark's over the same files, which all warm up with the same first set."""
    data = sizes[-1]
    engines: dict[str, Run] = {
        STEPS: rescale_live,
        ONE_STEP: partial(rescale_live, most_moved=_NO_BOUND),
        SPARK: repartition_offline,
    }
    found: dict[str, Measured] = {}
    with _folder() as scratch:
        sets = [(each, each.write(Path(scratch) / str(place))) for place, each in enumerate(sizes)]
        for name, run in engines.items():
            for each, files in sets:
                found[name] = _measured(spark, name, run, each, files)
    return Part(tuple(_rows(found, data)), (_ratio(found, quick=quick), *_agreement(found, data)))


def _of(*each: KeyedPayloads | None) -> list[KeyedPayloads]:
    return [data for data in each if data is not None]


def _folder(parent: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    # Spark maintains the stores of a stopped query for a while and may write to what is being deleted.
    return tempfile.TemporaryDirectory(prefix="penstock-rescale-", dir=parent, ignore_cleanup_errors=True)


def _measured(spark: SparkSession, name: str, run: Run, data: KeyedPayloads, files: list[Path]) -> Measured:
    with _folder(files[0].parent.parent) as place:
        start = time.perf_counter()
        rescaled = run(spark, data, files, Path(place))
        wall = time.perf_counter() - start
    took = rescaled.standstill
    say(
        f"{name}, {data.keys:,} keys: stood still for {took.whole_s:.2f} s over {rescaled.epochs} epochs, at "
        f"most {took.longest_s:.2f} s at once; {took.steady_s:.2f} s a steady epoch; {wall:.0f} s in all"
    )
    return Measured(rescaled, wall)


def _rows(found: dict[str, Measured], data: KeyedPayloads) -> list[dict[str, Value]]:
    return [_row(name, each, data.keys) for name, each in found.items()]


def _row(name: str, measured: Measured, keys: int) -> dict[str, Value]:
    got = measured.rescaled
    return {
        "engine": name,
        "case": f"{BEFORE} -> {AFTER} channels",
        "state_mb": round(got.state_bytes / 1e6, 1),
        "keys": keys,
        "moved_mb": round(got.moved_bytes / 1e6, 1),
        # What any way to twice the channels has to move at least: half of the state.
        "moved_over_ideal": round(2 * got.moved_bytes / got.state_bytes, 3) if got.state_bytes else None,
        "move_s": round(got.move_s, 3),
        "epochs": got.epochs,
        "standstill_s": round(got.standstill.whole_s, 3),
        "longest_s": round(got.standstill.longest_s, 3),
        "steady_epoch_s": round(got.standstill.steady_s, 3),
        "steady_after_s": round(got.standstill.steady_after_s, 3),
        "wall_s": round(measured.wall_s, 3),
    }


def _ratio(found: dict[str, Measured], *, quick: bool) -> Check:
    theirs, ours = (found[name].rescaled.standstill.whole_s for name in (SPARK, STEPS))
    value = round(theirs / max(ours, _SHORTEST_S), 2)
    return Check(
        "standstill of Spark over that of Penstock",
        value,
        _SOURCE,
        floor=FLOOR,
        unjudged=_QUICK_UNJUDGED if quick else "",
    )


def _agreement(found: dict[str, Measured], data: KeyedPayloads) -> list[Check]:
    """All state in all channels, and the same keys, counters and payloads as in Spark."""
    expected = found[SPARK].rescaled.kept
    checks = [Check("keys compared", expected.rows, "every key has a state", floor=data.keys)]
    for name, each in found.items():
        got = each.rescaled
        same = float(got.kept == expected)
        checks += [
            Check(f"channels at the end, {name}", got.channels, "all state is where it belongs", floor=AFTER),
            Check(f"same state, {name}", same, "keys, counters and payloads of Spark", floor=1),
        ]
    return checks
