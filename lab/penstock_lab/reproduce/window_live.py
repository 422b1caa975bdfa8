"""Window, batch and pane partitioning as runs have them: on Spark, and with costs that are measured here.

Figure 6 is the split on Arrow and the exchange behind it ([004] Fig. 6). The cost of Equation 1 and
the choice of B are held against the kernel that channels run, and Figure 7 is a cluster on paper with those
costs. Evenness is that of any span of a window's length, not of whole rounds alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.distribution.dealing import InTurn
from penstock.distribution.distribution import Placed
from penstock.routing import Batches, WindowChannels, WindowShape, copies, time_marks
from penstock.runtime.spark.session import spark_session
from penstock_lab.algorithms.window_ring import WindowRing
from penstock_lab.exchange import Exchanging
from penstock_lab.reports import Check, say
from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.reproduce.window_costs import WORKLOADS, BatchSweep, swept
from penstock_lab.reproduce.window_split_plots import draw_scale_out, draw_split

__all__ = ["WINDOW_LIVE"]

_OVERLAPS = (1, 20, 40, 60, 80, 100)
_BATCHES = (2, 5, 10)
_CHANNELS = 4
_NODES = (1, 2, 3, 4, 8)
_TASKS = 2
_TOGETHER = 100_000
"""Rows that are placed together; some have a hundred copies."""

Curves = Mapping[str, Mapping[int, float]]


def run(*, quick: bool, seed: int) -> Outcome:
    """All of it; the seed draws the rows of the windows."""
    say("measuring the split on Spark over size/slide (Figure 6)")
    split = _measured_split(spark_session(), sent=2_000_000 if quick else 8_000_000, rounds=5 if quick else 9)
    say("measuring windows in batches of every size (Equations 1 to 3)")
    sweeps = [swept(each, quick=quick, seed=seed) for each in WORKLOADS]
    say("scale-out on a cluster with the measured costs (Figure 7)")
    scale_out = _scale_out(sweeps[0])
    parts = [_split(split), *(_chosen(each) for each in sweeps), _scaled(scale_out), _spans()]
    return Outcome(
        rows=tuple(each for rows, _ in parts for each in rows),
        checks=tuple(check for _, checks in parts for check in checks),
        figures={"004-live-fig-6": draw_split(split), "004-live-fig-7": draw_scale_out(scale_out)},
    )


WINDOW_LIVE = Experiment(
    "004/live", "window, batch and pane partitioning on Spark, B from measured costs", run
)


# Figure 6.


def _measured_split(session: SparkSession, sent: int, rounds: int) -> Curves:
    """Tuples a processor second through the split and the exchange, the best of some rounds over all points.

    Batches get a copy of a tuple each, as in the paper. What Penstock does, one copy for each channel, is
    measured as well. Every point sends about as many rows, copies included, so each takes about as long.
    """
    exchanging = Exchanging(session)
    points: dict[tuple[str, int], tuple[Any, int]] = {}
    for overlap in _OVERLAPS:
        shape = WindowShape(size=10 * overlap, slide=10)
        points["panes", overlap] = partial(InTurn, _CHANNELS, run=64), sent
        for batch in (*reversed(_BATCHES), 1):
            name = f"batches of {batch}" if batch > 1 else "windows"
            whole = WindowShape(shape.size + (batch - 1) * shape.slide, batch * shape.slide)
            points[name, overlap] = partial(_opened, _Copies(whole)), int(sent * whole.slide / whole.size)
        once = _Deliveries(WindowChannels(shape, Batches(1), _CHANNELS))
        points["windows, one delivery a channel", overlap] = (
            partial(_opened, once),
            int(sent / min(overlap, _CHANNELS)),
        )
    best = dict.fromkeys(points, np.inf)
    # One technique after another, since what the last one left to collect disturbs the next.
    for name in dict.fromkeys(name for name, _ in points):
        # Panes have to be flat within 15 %, the others fall by far more.
        for _ in range(rounds if name == "panes" else 1 + rounds // 4):
            for each, (placer, rows) in points.items():
                if each[0] == name:
                    pane = WindowShape(10 * each[1], 10).pane
                    taken = exchanging.take(partial(_tables, rows, pane), placer, _CHANNELS, _TASKS)
                    best[each] = min(best[each], taken.cpu_s)
    curves: dict[str, dict[int, float]] = {}
    for (name, overlap), seconds in best.items():
        curves.setdefault(name, {})[overlap] = points[name, overlap][1] / seconds
    return curves


def _tables(rows: int, pane: int, task: int) -> Iterator[Any]:
    """The rows of a task: a time, the number of its pane, and a value."""
    first, last = rows * task // _TASKS, rows * (task + 1) // _TASKS
    for start in range(first, last, _TOGETHER):
        ids = np.arange(start, min(start + _TOGETHER, last))
        yield pa.table({"id": ids, "pane": ids // pane, "v": ids * 3})


def _opened(placer: Any, _task: int) -> Any:
    """The same placer in every task."""
    return placer


@dataclass(frozen=True)
class _Copies:
    """A copy of each tuple for each batch of windows that holds it."""

    shape: WindowShape
    channels: int = _CHANNELS

    def place(self, rows: Any) -> Placed:
        """By the batches of its time."""
        times = rows["id"].to_numpy()
        sent = copies(time_marks(self.shape, times, int(times[-1]) + 1), self.channels)
        return sent.tuples, sent.channels.astype(np.int32)


@dataclass(frozen=True)
class _Deliveries:
    """A copy of each tuple for each channel that computes one of its windows."""

    windows: WindowChannels

    @property
    def channels(self) -> int:
        """Those that compute windows."""
        return self.windows.channels

    def place(self, rows: Any) -> Placed:
        """By the windows of its time."""
        return self.windows.deliveries(rows["id"].to_numpy())


def _split(curves: Curves) -> tuple[list[Row], list[Check]]:
    rows = [
        row(
            "6",
            name,
            f"size/slide {overlap}",
            "split, tuples/s",
            round(rate),
            None,
            "Arrow, with the exchange",
        )
        for name, rates in curves.items()
        for overlap, rate in rates.items()
    ]
    panes, windows = curves["panes"], curves["windows"]
    ours = curves["windows, one delivery a channel"]
    flat = max(panes.values()) / min(panes.values())
    checks = [
        Check("panes on Spark: fastest over slowest split", flat, "[004] Fig. 6: flat", ceiling=1.15),
        Check("windows on Spark: 100 over 1", windows[100] / windows[1], "[004] Fig. 6: falls", ceiling=0.5),
        Check(
            "batches of 10 over windows at 100",
            curves["batches of 10"][100] / windows[100],
            "[004] Fig. 6",
            floor=1.0,
        ),
        Check(
            "one delivery a channel over windows at 100", ours[100] / windows[100], "beyond [004]", floor=1.0
        ),
    ]
    return rows, checks


# Equations 1 to 3.


def _chosen(sweep: BatchSweep) -> tuple[list[Row], list[Check]]:
    """What the model says of each size, and how good the size that it chooses is."""
    name = sweep.workload.name
    rows: list[Row] = []
    for batch, rate in sweep.rates.items():
        predicted = sweep.predicted[batch]
        rows.append(
            row("Eq. 1", f"B = {batch}", name, "tuples/s", round(rate), round(predicted), "paper: the model")
        )
    best = max(sweep.rates, key=lambda each: sweep.rates[each])
    rows.append(
        row("Eq. 3", f"B = {sweep.chosen}", name, "chosen; best of the sweep", sweep.chosen, best, "")
    )
    off = [abs(sweep.cost[each] / sweep.modelled[each] - 1) for each in sweep.cost]
    checks = [
        Check(
            f"{name}: Eq. 1 off the measured cost by, median",
            float(np.median(off)),
            "[004] Eq. 1",
            ceiling=0.15,
        ),
        Check(
            f"{name}: throughput of the chosen B over the best",
            sweep.rates[sweep.chosen] / sweep.rates[best],
            "[004] Eq. 3",
            floor=0.9,
        ),
    ]
    return rows, checks


# Figure 7.


def _scale_out(sweep: BatchSweep) -> Curves:
    """Throughput over nodes with the costs that were measured: what the busiest channel allows."""
    shape, costs = WindowShape(100, 1), sweep.costs
    times = np.arange(1_000, 1_000 + 39_600)
    curves: dict[str, dict[int, float]] = {"panes": {}}
    for nodes in _NODES:
        runs = times // 64 % nodes
        busiest = np.bincount(runs, minlength=nodes).max() * costs.row
        curves["panes"][nodes] = len(times) / float(busiest)
    for batch in (1, 2, 10, 33, 50):
        name = f"batches of {batch}" if batch > 1 else "windows"
        curves[name] = {
            nodes: _throughput(shape, batch, nodes, times, sweep, copies=True) for nodes in _NODES
        }
    curves["windows, one delivery a channel"] = {
        nodes: _throughput(shape, 1, nodes, times, sweep, copies=False) for nodes in _NODES
    }
    return curves


def _throughput(  # noqa: PLR0913 -- a point of a curve
    shape: WindowShape, batch: int, nodes: int, times: Any, sweep: BatchSweep, *, copies: bool
) -> float:
    windows = WindowChannels(shape, Batches(batch), nodes)
    _, channels = windows.deliveries(times)
    received = np.bincount(channels, minlength=nodes).astype(float)
    if copies and nodes > 1:
        # Every batch of a channel gets a copy of its own.
        whole = WindowShape(shape.size + (batch - 1) * shape.slide, batch * shape.slide)
        received *= len(times) * whole.size / whole.slide / received.sum()
    every = np.arange(times[0] // shape.slide, times[-1] // shape.slide)
    computed = np.bincount(windows.of(every), minlength=nodes)
    # A window of the paper has 100 tuples; ours cost what a window of the workload does, tuple by tuple.
    busy = received * sweep.costs.row + computed * shape.size * sweep.costs.update
    return len(times) / float(busy.max())


def _scaled(curves: Curves) -> tuple[list[Row], list[Check]]:
    rows = [
        row(
            "7a" if name == "panes" else "7b",
            name,
            f"nodes: {nodes}",
            "tuples/s",
            round(rate),
            None,
            "our costs",
        )
        for name, rates in curves.items()
        for nodes, rate in rates.items()
    ]
    panes, windows = curves["panes"], curves["windows"]
    linear = min(rate / (nodes * panes[1]) for nodes, rate in panes.items())
    fifty = curves["batches of 50"]
    checks = [
        Check("panes: least throughput over linear", linear, "[004] Fig. 7a", floor=0.95),
        Check("windows: two nodes over one", windows[2] / windows[1], "[004] Fig. 7b: falls", ceiling=1.0),
        Check("batches of 50 over windows, 4 nodes", fifty[4] / windows[4], "[004] Fig. 7b", floor=1.0),
    ]
    return rows, checks


# Evenness.


def _spans() -> tuple[list[Row], list[Check]]:
    """The busiest of four channels over spans of one window: rows by the ring, and dealt out in runs."""
    shape, times = WindowShape(1_000, 10), np.arange(1_000_000)
    routed: dict[str, Any] = {
        "rows by the ring": WindowRing(shape, _CHANNELS).route(times),
        "rows in runs of a mean pane": times // shape.pane % _CHANNELS,
    }
    found = {}
    for name, routes in routed.items():
        spans = routes[: len(times) // shape.size * shape.size].reshape(-1, shape.size)
        shares = [np.bincount(each, minlength=_CHANNELS).max() / shape.size for each in spans[:400]]
        found[name] = float(np.mean(shares))
    rows = [
        row("7a", name, "spans of a window", "share of the busiest of 4", round(share, 3), 0.25, "even: 0.25")
        for name, share in found.items()
    ]
    ring, runs = found.values()
    return rows, [
        Check("rows in runs: busiest over the mean, any span", runs * _CHANNELS, "[000] §4.2", ceiling=1.1),
        Check("rows by the ring: busiest over the mean, any span", ring * _CHANNELS, "why not", floor=2.0),
    ]
