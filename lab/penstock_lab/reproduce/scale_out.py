"""A cluster on paper: Penstock's split of a stream with the node costs of the paper ([004] Fig. 7).

A node's seconds per window update and per received tuple solve the paper's two measured capacities:
5 K t/s where a tuple updates 100 windows, 40 K t/s where it updates one. Throughput is what the
busiest channel allows; the split itself is not the bottleneck, as in the paper (27 % busy at most).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.routing import BatchModel, TupleCosts, WindowShape, copies, count_marks, deliveries
from penstock.routing.batch_size import printed_updates
from penstock.routing.window_split import partition_channel
from penstock_lab.algorithms.batch_windows import batch_of, batch_shape
from penstock_lab.algorithms.window_ring import WindowRing
from penstock_lab.reports import Check
from penstock_lab.reproduce.rows import Row, row

__all__ = [
    "PAPER_COSTS",
    "PAPER_SHAPE",
    "Curves",
    "ScaleOut",
    "partition_name",
    "scale_out_curves",
    "scale_out_findings",
]

Curves = Mapping[str, Mapping[int, float]]

PAPER_SHAPE = WindowShape(size=100, slide=1)
_PANE_CAPACITY = 32_000.0
_UPDATE = (1 / 5_000 - 1 / 40_000) / 99
PAPER_COSTS = TupleCosts(update=_UPDATE, open_close=0.0, other=1 / 40_000 - _UPDATE)

_NODES = (1, 2, 3, 4, 8)
_SIZES = (1, 2, 10, 33, 50)
_PAPER: Mapping[tuple[str, int], float] = {
    ("windows", 1): 5_000,
    ("windows", 2): 800,
    ("windows", 3): 1_200,
    ("windows", 4): 1_600,
    **{("panes", nodes): 32_000 * nodes for nodes in (1, 2, 3, 4)},
}


@dataclass(frozen=True)
class ScaleOut:
    """Throughputs in tuples/s over `tuples` tuples of a stream in full flow."""

    tuples: int

    def panes(self, channels: int) -> float:
        """Each pane on one channel of the ring, at the paper's 32 K tuples/s a channel."""
        times = np.arange(self._start, self._start + self.tuples)
        routes = WindowRing(PAPER_SHAPE, channels).route(times)
        return self.tuples * _PANE_CAPACITY / float(np.bincount(routes, minlength=channels).max())

    def batches(self, channels: int, batch: int) -> float:
        """A copy of each tuple for each batch, as the paper splits; a batch of 1 is a window."""
        # On a single node the paper replicates nothing.
        send = copies if channels > 1 else deliveries
        sent = send(count_marks(batch_shape(PAPER_SHAPE, batch), self._start, self.tuples), channels)
        return self._throughput(sent.channels, channels, batch)

    def delivered(self, channels: int, batch: int) -> float:
        """One copy of each tuple for each channel."""
        marks = count_marks(batch_shape(PAPER_SHAPE, batch), self._start, self.tuples)
        return self._throughput(deliveries(marks, channels).channels, channels, batch)

    @property
    def _start(self) -> int:
        return 10 * PAPER_SHAPE.size

    def _throughput(self, received: NDArray[np.int32], channels: int, batch: int) -> float:
        updates = copies(count_marks(PAPER_SHAPE, self._start, self.tuples), channels).partitions
        updated = partition_channel(batch_of(updates, batch), channels)
        busy = PAPER_COSTS.other * np.bincount(received, minlength=channels)
        busy = busy + PAPER_COSTS.update * np.bincount(updated, minlength=channels)
        return self.tuples / float(busy.max())


def partition_name(batch: int) -> str:
    """What a partitioning is called; a batch of 1 is a window."""
    return f"batches of {batch}" if batch > 1 else "windows"


def scale_out_curves(model: ScaleOut) -> Curves:
    """Throughput over nodes of each partitioning of Figure 7, and of one delivery a channel."""
    curves = {"panes": {nodes: model.panes(nodes) for nodes in _NODES}}
    for batch in _SIZES:
        curves[partition_name(batch)] = {nodes: model.batches(nodes, batch) for nodes in _NODES}
    curves["windows, one delivery a channel"] = {nodes: model.delivered(nodes, 1) for nodes in _NODES}
    return curves


def scale_out_findings(curves: Curves) -> tuple[list[Row], list[Check]]:
    """The rows of Figure 7 and a check for each sentence about it."""
    windows, ours = curves["windows"], curves["windows, one delivery a channel"]
    gains = {(low, high): _gain(curves, low, high) for low, high in ((2, 10), (33, 50))}
    per_node = (windows[4] - windows[2]) / 2
    rows = [
        row(
            "7a" if name == "panes" else "7b", name, f"nodes: {nodes}", "tuples/s", rate,
            _PAPER.get((name, nodes)), _note(name, nodes),
        )
        for name, rates in curves.items()
        for nodes, rate in rates.items()
    ]  # fmt: skip
    for (low, high), said in (((2, 10), 6_500), ((33, 50), 1_200)):
        setting = f"B {low} to {high}, nodes: 4"
        printed = _printed_gain(low, high)
        rows += [
            row("7b", "batches", setting, "gain, tuples/s", gains[low, high], said, "follows from the split"),
            row("7b", "Eq. 1 as printed", setting, "gain, tuples/s", printed, said, "undercounts updates"),
        ]
    linear = min(rate / (nodes * curves["panes"][1]) for nodes, rate in curves["panes"].items())
    checks = [
        Check("panes: least throughput over linear, to 8 nodes", linear, "[004] Fig. 7a", floor=0.95),
        Check("windows: two nodes over one", windows[2] / windows[1], "[004] Fig. 7b: falls", ceiling=1.0),
        _near("windows on two nodes", windows[2], 800, 0.05),
        _near("windows, t/s an added node", per_node, 400, 0.05),
        _near("batches, gain from 2 to 10", gains[2, 10], 6_500, 0.1),
        _near("batches, gain from 33 to 50", gains[33, 50], 1_200, 0.25),
        Check("gain 33 to 50 over 2 to 10", gains[33, 50] / gains[2, 10], "[004] Fig. 7b", ceiling=1.0),
        Check(
            "batches of 50: 8 nodes over four times 2 nodes",
            _linear(curves["batches of 50"]),
            "[004] §3.3",
            floor=0.9,
        ),
        Check("one delivery a channel: two nodes over one", ours[2] / ours[1], "beyond [004]", floor=1.0),
        Check(
            "one delivery a channel over the paper's windows, 8 nodes",
            ours[8] / windows[8],
            "beyond [004]",
            floor=1.0,
        ),
    ]
    return rows, checks


def _gain(curves: Curves, low: int, high: int) -> float:
    return curves[f"batches of {high}"][4] - curves[f"batches of {low}"][4]


def _printed_gain(low: int, high: int) -> float:
    model = BatchModel(PAPER_SHAPE, PAPER_COSTS, 1.0, channels=4, headroom=0.0, updates=printed_updates)
    before, after = model.throughput(np.array([low, high]))
    return float(after - before)


def _note(name: str, nodes: int) -> str:
    if name == "panes":
        return "32 K t/s a node is the paper's; the evenness is ours"
    if name != "windows" or nodes > 4:
        return ""
    return "gives the cost of updates" if nodes == 1 else "from 40 K t/s at one update a tuple"


def _linear(rates: Mapping[int, float]) -> float:
    return rates[8] / (4 * rates[2])


def _near(name: str, ours: float, paper: float, within: float) -> Check:
    return Check(f"{name}: off {paper:,} by", abs(ours / paper - 1), "[004] Fig. 7b", ceiling=within)
