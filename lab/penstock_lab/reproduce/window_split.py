"""Window, batch and pane partitioning: copies and throughput ([004] §2 and §3, Fig. 2, 4, 6, 7).

Figure 6 is measured on Penstock's own split, Figure 7 on the model of `scale_out`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import process_time

import numpy as np

from penstock.routing import (
    Batches,
    BatchModel,
    WindowChannels,
    WindowShape,
    busy_limit,
    choose_batch,
    copies,
    count_marks,
    time_marks,
)
from penstock.routing.batch_size import printed_updates
from penstock.routing.window_ids import Instants
from penstock_lab.algorithms.batch_windows import batch_shape, pane_shape
from penstock_lab.algorithms.window_ring import WindowRing
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.scale_out import (
    PAPER_COSTS,
    PAPER_SHAPE,
    Curves,
    ScaleOut,
    partition_name,
    scale_out_curves,
    scale_out_findings,
)
from penstock_lab.reproduce.window_split_plots import draw_scale_out, draw_split

__all__ = ["WINDOW_SPLIT"]

_OVERLAPS = (1, 20, 40, 60, 80, 100)
_BATCHES = (2, 5, 10)
_BLOCK = 512  # tuples that the split takes at a time: the copies of a block stay in the cache


def run(*, quick: bool, seed: int) -> Outcome:
    """All of it; the seed is unused, because nothing here is random."""
    del seed
    say("measuring the split over size/slide (Figure 6)")
    split = _measure_split(rounds=100 if quick else 500)
    say("scale-out in the model (Figure 7)")
    scale_out = scale_out_curves(ScaleOut(19_800 if quick else 39_600))
    parts = [_worked_examples(), _split(split), scale_out_findings(scale_out), _batch_choice()]
    return Outcome(
        rows=tuple(each for rows, _ in parts for each in rows),
        checks=tuple(check for _, checks in parts for check in checks),
        figures={"004-fig-6": draw_split(split), "004-fig-7": draw_scale_out(scale_out)},
    )


WINDOW_SPLIT = Experiment("004/split", "window, batch and pane partitioning", run)


def _worked_examples() -> tuple[list[Row], list[Check]]:
    shape = WindowShape(size=3, slide=1)
    batched = len(copies(count_marks(batch_shape(shape, 3), 30, 3), 2).tuples)
    plain = len(copies(count_marks(shape, 30, 3), 2).tuples)
    parts = WindowRing(WindowShape(size=6, slide=4), channels=3).parts(2 - 1)
    found = (parts.channel + 1, *(pane + 1 for pane in [*parts.received, *parts.local]))
    off = sum(ours != theirs for ours, theirs in zip(found, (2, 3, 4, 5), strict=True))
    ring = f"node {found[0]} from R{found[1]}, R{found[2]}, R{found[3]}"
    rows = [
        row("2", "batch", "w = 3, s = 1, B = 3", "copies of 3 tuples", batched, 5, ""),
        row("2", "window", "w = 3, s = 1", "copies of 3 tuples", plain, 9, ""),
        row("4", "panes", "w = 6, s = 4, 3 nodes", "w2 on", ring, "node 2 from R3, R4, R5", ""),
    ]
    checks = [
        Check("copies in batches of 3, distance from 5", abs(batched - 5), "[004] §2.3", ceiling=0),
        Check("copies by windows, distance from 9", abs(plain - 9), "[004] §2.3", ceiling=0),
        Check("ring of Figure 4, places that differ", off, "[004] Fig. 4", ceiling=0),
    ]
    return rows, checks


def _measure_split(rounds: int) -> Curves:
    """Tuples/s of one core for each technique over size/slide, the best of many rounds over all of them.

    Rounds, because a machine that is slow for a second must not slow one point of a curve alone.
    """
    times = np.arange(1_000_000, 1_000_000 + _BLOCK)
    splits: dict[tuple[str, int], Callable[[], None]] = {}
    for overlap in _OVERLAPS:
        shape = WindowShape(size=10 * overlap, slide=10)
        splits["panes", overlap] = partial(_split_panes, WindowRing(shape, 4), times)
        for batch in (*reversed(_BATCHES), 1):
            splits[partition_name(batch), overlap] = partial(_split_copies, batch_shape(shape, batch), times)
    best = dict.fromkeys(splits, np.inf)
    for _ in range(rounds):
        best = {point: min(best[point], _seconds(split)) for point, split in splits.items()}
    curves: dict[str, dict[int, float]] = {}
    for (name, overlap), seconds in best.items():
        curves.setdefault(name, {})[overlap] = _BLOCK / seconds
    return curves


def _split_panes(ring: WindowRing, times: Instants) -> None:
    time_marks(pane_shape(ring.shape), times, int(times[-1]) + 1)
    ring.route(times)


def _split_copies(partition: WindowShape, times: Instants) -> None:
    copies(time_marks(partition, times, int(times[-1]) + 1), 4)


def _seconds(split: Callable[[], None]) -> float:
    split()  # what ran before has filled the cache with its own arrays
    start = process_time()
    for _ in range(5):
        split()
    return (process_time() - start) / 5


def _split(curves: Curves) -> tuple[list[Row], list[Check]]:
    rows = [
        row("6", name, f"size/slide {overlap}", "split, tuples/s", rate, None, "paper's value only drawn")
        for name, rates in curves.items()
        for overlap, rate in rates.items()
    ]
    flat = max(curves["panes"].values()) / min(curves["panes"].values())
    checks = [Check("panes: fastest over slowest split", flat, "[004] Fig. 6: flat", ceiling=1.25)]
    lines = {name: _line(rates) for name, rates in curves.items() if name != "panes"}
    checks += [
        Check(f"{name}: cost linear in size/slide, R²", fit, "[004] Fig. 6: linear", floor=0.97)
        for name, (_, fit) in lines.items()
    ]
    checks += [
        Check(f"{name}: cost rises, ns a step of size/slide", slope, "[004] Fig. 6: falls", floor=0.1)
        for name, (slope, _) in lines.items()
    ]
    names = list(lines)
    checks += [
        Check(f"rise of {more} over {fewer}", lines[more][0] / lines[fewer][0], "[004] Fig. 6", ceiling=1.0)
        for more, fewer in pairwise(names)
    ]
    return rows, checks


def _line(rates: Mapping[int, float]) -> tuple[float, float]:
    """Slope in ns a tuple of a straight line through the costs, and how much of them it explains (R²)."""
    overlaps = np.array(list(rates), float)
    costs = 1e9 / np.array(list(rates.values()))
    slope, _ = np.polyfit(overlaps, costs, 1)
    return float(slope), float(np.corrcoef(overlaps, costs)[0, 1] ** 2)


def _batch_choice() -> tuple[list[Row], list[Check]]:
    bound = 1.0
    model = BatchModel(PAPER_SHAPE, PAPER_COSTS, rate=9_000, channels=4, headroom=0.05)
    fits = choose_batch(model, period=10, bound=bound)
    crowded = replace(model, rate=45_000)
    least = choose_batch(crowded, period=10, bound=bound)
    below, chosen = model.delay(np.array([max(fits.batch - 1, 1), fits.batch]), 10).tolist()
    limit = busy_limit(PAPER_SHAPE, 4)
    lowest = float(crowded.excess(np.arange(1, limit + 1)).min())
    printed = choose_batch(replace(crowded, updates=printed_updates), period=10, bound=bound, limit=4_096)
    rows = [
        row("Eq. 3", "batches", "9,000 t/s, nodes: 4", "B within the bound", fits.batch, None, "smallest"),
        row("Eq. 3", "batches", "45,000 t/s, nodes: 4", "B of least f(B)", least.batch, None, "the limit"),
        row(
            "Eq. 3",
            "batches",
            "45,000 t/s, nodes: 4",
            "B of least f(B), updates as printed",
            printed.batch,
            None,
            "undercounts updates",
        ),
    ]
    checks = [
        Check("delay of the chosen batch over its bound", chosen / bound, "[004] Eq. 3", ceiling=1.0),
        Check("delay of the next smaller over the bound", below / bound, "[004] Eq. 3", floor=1.0),
        Check("no solution: f(B) above its minimum", least.excess - lowest, "[004] Eq. 1-3", ceiling=1e-6),
        Check("no solution: B over what keeps 4 nodes busy", least.batch / limit, "[004] §2.3", ceiling=1.0),
        Check("no solution: busiest of 4 over the mean", _busiest(least.batch), "[004] §2.3", ceiling=1.1),
        Check(
            "no solution, as printed: B lies inside", float(printed.batch), "[004] Eq. 1-3", ceiling=4_095.0
        ),
    ]
    return rows, checks


def _busiest(batch: int) -> float:
    """The tuples of the busiest of four channels over the mean, in the worst span of one window."""
    windows = WindowChannels(PAPER_SHAPE, Batches(batch), channels=4)
    spans = []
    for start in range(1_000, 1_000 + 4 * batch, 7):
        _, channels = windows.deliveries(np.arange(start, start + PAPER_SHAPE.size))
        counts = np.bincount(channels, minlength=4)
        spans.append(counts.max() / counts.mean())
    return float(max(spans))
