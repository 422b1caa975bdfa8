"""What whole windows cost in the kernel that channels run, in batches of every size ([004] Eq. 1 to 3).

Rows are dealt out as a run deals them out, and every channel of a cluster of four runs its epochs on this
machine, one after the other, on processor time. Throughput is what the busiest channel allows in an epoch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.control.batch_policy import modelled
from penstock.control.observation import Batched
from penstock.distribution import ByWindow
from penstock.operators.cost_meter import CostMeter
from penstock.operators.exchange import TIME
from penstock.operators.kernel import Channel, Kernel, Seen, StagePosition
from penstock.routing import Batches, WindowChannels, WindowShape, busy_limit, choose_batch
from penstock.state.segments import ChannelStore, Segment
from penstock.state.storage import Location

__all__ = ["WORKLOADS", "BatchSweep", "WindowCosts", "Workload", "swept"]

_CHANNELS = 4
_EPOCHS = 3


@dataclass(frozen=True)
class Workload:
    """A function over windows of `overlap` slides of `density` rows; an epoch closes `closed` windows."""

    name: str
    function: Callable[[Any], Any]
    overlap: int
    closed: int
    density: int


@dataclass(frozen=True)
class WindowCosts:
    """Seconds for a row that a channel receives, for a window, and for a row of a window in it."""

    row: float
    window: float
    update: float


@dataclass(frozen=True)
class BatchSweep:
    """Throughput by batch size, as measured and as predicted, and the size that the costs of B = 1 lead to.

    `cost` and `modelled` are seconds a received tuple.
    """

    workload: Workload
    costs: WindowCosts
    rates: Mapping[int, float]
    predicted: Mapping[int, float]
    cost: Mapping[int, float]
    modelled: Mapping[int, float]
    chosen: int


def _extremes(rows: Any) -> Mapping[str, Any]:
    values = rows["v"].to_numpy()
    return {"low": [values.min()], "high": [values.max()]}


def _sorted_spread(rows: Any) -> Mapping[str, Any]:
    values = np.sort(rows["v"].to_numpy())
    places = np.searchsorted(values, np.linspace(values[0], values[-1], 2_000))
    return {"low": [values[0]], "high": [float(places.mean())]}


WORKLOADS = (
    Workload("cheap, size/slide 100, 400 windows an epoch", _extremes, 100, 400, 60),
    Workload("dear, size/slide 100, 80 windows an epoch", _sorted_spread, 100, 80, 40),
    Workload("cheap, size/slide 6, 200 windows an epoch", _extremes, 6, 200, 400),
)


def swept(workload: Workload, *, quick: bool, seed: int) -> BatchSweep:
    """Run the workload with each batch size; the sizes that the policy may choose are among them."""
    bench = _Bench(workload, seed, repeats=4 if quick else 9)
    shape = WindowShape(workload.overlap * workload.density, workload.density)
    limit = max(busy_limit(shape, _CHANNELS), workload.closed // _CHANNELS)
    sizes = sorted({1, 2, 4, 8, 16, limit, 2 * limit, 4 * limit} & set(range(1, 4 * limit + 1)))
    found = {size: bench.measured(size) for size in sizes}
    one = found[1]
    # A rate far above what channels sustain: no size keeps the bound, so that of the least backlog is chosen.
    rate = 10 * one.throughput
    batched = Batched(
        1, workload.overlap, 1, one.rows, float(one.windows), one.window_seconds, one.row_seconds
    )
    model = modelled(batched, rate, _CHANNELS, headroom=0.0)
    chosen = choose_batch(model, period=60, bound=5, limit=limit).batch
    every = np.array(sizes)
    costs = WindowCosts(
        one.row_seconds, one.window_seconds, one.window_seconds / (workload.overlap * workload.density)
    )
    return BatchSweep(
        workload,
        costs,
        rates={size: each.throughput for size, each in found.items()},
        predicted=dict(zip(sizes, model.throughput(every).tolist(), strict=True)),
        cost={size: each.cost for size, each in found.items()},
        modelled=dict(zip(sizes, model.cost(every).tolist(), strict=True)),
        chosen=chosen,
    )


@dataclass(frozen=True)
class _Measured:
    """An epoch: its rows and windows, the busiest channel's seconds, and what windows and rows cost."""

    rows: int
    windows: int
    busiest: float
    window_seconds: float
    row_seconds: float
    cost: float

    @property
    def throughput(self) -> float:
        return self.rows / self.busiest


@dataclass(frozen=True)
class _Bench:
    """A stage in channels without Spark: rows of some epochs, and the kernel."""

    workload: Workload
    seed: int
    repeats: int

    def measured(self, batch: int) -> _Measured:
        """Epochs in full flow with this batch size: the repeat whose busiest channel took the least."""
        return min((self._run(batch) for _ in range(self.repeats)), key=lambda each: each.busiest)

    def _run(self, batch: int) -> _Measured:
        """Some epochs; the last one counts: its windows are full, and rows of earlier ones are kept."""
        load, kernel = self.workload, self._kernel()
        distribution = kernel.distribution
        assert isinstance(distribution, ByWindow)
        windows = WindowChannels(distribution.shape, Batches(batch), _CHANNELS)
        rng = np.random.default_rng(self.seed)
        before, until = StagePosition(), 0
        with TemporaryDirectory() as folder:
            location = Location(f"{folder}/segments")
            location.make()
            state: list[tuple[Segment, ...]] = [()] * _CHANNELS
            for epoch in range(_EPOCHS):
                since, until = until, until + load.closed + (0 if epoch else load.overlap)
                times = np.sort(rng.integers(since, until, (until - since) * load.density))
                table = pa.table({TIME: times, "v": rng.random(len(times))})
                after = kernel.advance(before, (until,), Seen(rows=True, state=True), None).position
                meter = CostMeter(process_time, process_time)
                busy = np.zeros(_CHANNELS)
                rows, channels = windows.deliveries(times)
                for channel in range(_CHANNELS):
                    own = table.take(pa.array(rows[channels == channel]))
                    began = process_time()
                    store = ChannelStore(location, f"{epoch}-{channel}", state[channel])
                    state[channel] = kernel.step(
                        Channel(
                            number=channel,
                            new=(own if own.num_rows else None,),
                            form="rows",
                            store=store,
                            before=before,
                            after=after,
                            ended=False,
                            emit=_dropped,
                            channels=_CHANNELS,
                            meter=meter,
                            view=windows,
                        )
                    )
                    busy[channel] = process_time() - began
                before = after
        costs = meter.costs()
        assert costs is not None
        received, computed = len(rows), costs.rows.total
        return _Measured(
            rows=len(times),
            windows=round(computed),
            busiest=float(busy.max()),
            window_seconds=costs.cpu.total / computed,
            row_seconds=float(busy.sum() - costs.cpu.total) / received,
            cost=float(busy.sum()) / received,
        )

    def _kernel(self) -> Kernel:
        stream = ps.stream("s", "time timestamp, v double", time="time").select("v")
        windowed = stream.window(f"{self.workload.overlap} us", slide="1 us")
        relation = windowed.apply(self.workload.function, "low double, high double")
        return relation.operator.compile("timestamp", [lambda texts: [("double", True) for _ in texts]])


def _dropped(_rows: Any) -> None:
    """Results are not looked at."""
