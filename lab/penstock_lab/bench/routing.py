"""`penstock bench routing`: how fast tuples find their channels and are counted on the way, on one core.

Items are Zipf(1.0) over a million keys. The table holds the 4,096 hottest keys, so that more than half of
the lookups end there and the rest on the ring. Lossy counting has the precision that the default
setting of [003] Table 1 gives: ten channels, alpha = 1.2 and sigma = 0.1 make delta = 0.00176, and
epsilon is a tenth of it, a window of 5,667 items.
"""

import time
from collections.abc import Callable

import numpy as np

from penstock.routing import Hashes, HashPair, Ring
from penstock.sketches import CountMin, LossyCounting, splitmix64
from penstock_lab.bench.construction import construction
from penstock_lab.bench.data import zipf
from penstock_lab.bench.timing import Measured, best_seconds
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["routing"]

KEYS = 1_000_000
TABLE = 4096
CHANNELS = 10
DELTA = 0.1 * 0.2 / (1 + 1.2 / 9) / CHANNELS
EPSILON = DELTA / 10
ROUTE_FLOOR = 50e6
COUNTING_FLOOR = 10e6
SOURCE = "promised for one core"


def routing(*, items: int = 2_000_000, repeats: int = 15, seed: int = 7, quick: bool = False) -> Report:
    """Measure every part, each as the best of `repeats` runs (`quick`: half a million items, five runs)."""
    items, repeats = (min(items, 500_000), min(repeats, 5)) if quick else (items, repeats)
    say(f"{items:,} items, Zipf 1.0 over {KEYS:,} keys")
    stream = zipf_hashes(items, seed)
    parts = [lookup(stream, repeats), counting(stream, repeats), construction(seed, repeats)]
    rows = [row for part in parts for row in part.rows]
    return report_here("routing", seed, rows, [check for part in parts for check in part.checks])


def zipf_hashes(items: int, seed: int) -> Hashes:
    """Hashes of Zipf(1.0) keys."""
    return splitmix64(zipf(np.random.default_rng(seed), items, KEYS).view(np.uint64))


def lookup(stream: Hashes, repeats: int) -> Measured:
    """Routes by a hash pair, by its ring alone, and what both cost to build."""
    say("lookup")
    hashes, counts = np.unique(stream, return_counts=True)
    hot = hashes[np.argsort(-counts, kind="stable")[:TABLE]]
    targets = np.arange(len(hot), dtype=np.int32) % np.int32(CHANNELS)
    ring = Ring(CHANNELS)
    pair = HashPair(hot, targets, ring)
    hits = float(counts[np.isin(hashes, hot)].sum() / len(stream))
    case = f"route, table of {len(hot):,} ({hits:.0%} of the hashes), ring of {ring.buckets:,}"
    by_pair = _row(case, len(stream), lambda: pair.route(stream), repeats)
    rows = [
        by_pair,
        _row(f"route, ring of {ring.buckets:,} alone", len(stream), lambda: ring.route(stream), repeats),
        _row("build the ring", ring.buckets, lambda: Ring(CHANNELS).cells, repeats),
        _row("build the table", len(hot), lambda: HashPair(hot, targets, ring).arrays, repeats),
    ]
    return Measured(tuple(rows), (_check("route, hashes a second", by_pair, ROUTE_FLOOR),))


def counting(stream: Hashes, repeats: int) -> Measured:
    """Updates of the sketches; lossy counting is the one that has a floor."""
    say("counting")
    case = f"lossy counting, epsilon {EPSILON:.3g}"
    lossy = _row(case, len(stream), lambda: LossyCounting(EPSILON).update(stream), repeats)
    rows = [
        lossy,
        _row("count-min, 0.05 and 0.05", len(stream), lambda: CountMin(0.05, 0.05).update(stream), repeats),
    ]
    return Measured(tuple(rows), (_check("lossy counting, items a second", lossy, COUNTING_FLOOR),))


def _row(case: str, items: int, work: Callable[[], object], repeats: int) -> dict[str, Value]:
    # Processor time, because the bound is for one core and other work may share it.
    seconds = best_seconds(work, repeats, clock=time.process_time)
    return {
        "engine": "penstock",
        "case": case,
        "items": items,
        "items_per_s": round(items / seconds),
        "cpu_s": round(seconds, 6),
        "repeats": repeats,
    }


def _check(name: str, row: dict[str, Value], floor: float) -> Check:
    speed = row["items_per_s"]
    assert isinstance(speed, int)
    return Check(name, speed, SOURCE, floor=floor)
