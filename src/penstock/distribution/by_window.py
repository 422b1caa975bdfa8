"""Rows go to every channel that computes one of their windows ([004] §2.2, §2.3).

Neighbouring windows are computed in batches on one channel. The size of batches may change at a boundary that
lies after all windows of rows that are kept, so that none of them has to move.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.columns import TIME
from penstock.distribution.distribution import (
    Distribution,
    Files,
    Forming,
    Held,
    Layout,
    Measured,
    Placed,
    Receipt,
    Sample,
    Settings,
    Steering,
    Told,
    dealt,
)
from penstock.distribution.learnt_costs import LearntCosts
from penstock.routing import Batches, WindowChannels, WindowShape
from penstock.routing.window_ids import window_range
from penstock.state.placing import Flow, Mask, Numbers, Placing, Read

__all__ = ["Batched", "ByWindow", "WindowLayout", "WindowPlacing"]

_MOST_TIMES = 1024  # times of a segment for which channels are looked up


@dataclass(frozen=True, kw_only=True)
class WindowLayout(Layout):
    """Which windows are computed together."""

    batches: Batches

    kind: ClassVar[str] = "by window"

    @classmethod
    def read(cls, value: dict[str, Any], forming: Forming | None) -> "WindowLayout":
        """From plain values."""
        batches = Batches.from_json(value.pop("batches"))
        return cls(**value, forming=forming, batches=batches)


@dataclass(frozen=True)
class ByWindow(Distribution):
    """Rows go to the channels that compute their windows, `batch` neighbours on one channel at first.

    Where the number is `fixed`, no plan changes it. A row has a time, or the `slices` column numbers panes of
    `width` from `offset` on; then `mergeable` partials of rows may be formed in any channel.
    """

    shape: WindowShape
    batch: int = 1
    fixed: bool = False
    slices: str = ""
    width: int = 1
    offset: int = 0
    mergeable: bool = False

    copies: ClassVar[bool] = True

    @property
    def bucket(self) -> str:
        """The column that numbers panes."""
        return self.slices

    def times(self, rows: Any) -> Numbers:
        """For each row a time that lies in the same windows as it does."""
        if not self.slices:
            return np.asarray(rows[TIME].to_numpy())
        return np.asarray(rows[self.slices].to_numpy() * self.width + self.offset)

    def view(self, layout: WindowLayout) -> WindowChannels:
        """The channel of each window."""
        return WindowChannels(self.shape, layout.batches, layout.channels)

    def counted(self, view: WindowChannels, rows: Any, channel: int) -> NDArray[np.bool_]:
        """Of copies, the one on the channel of the last window counts."""
        return np.asarray(view.last(self.times(rows)) == channel)

    def home(self, layout: WindowLayout, files: Files, port: int, task: int) -> "WindowPlacer":
        """By windows."""
        del files, port, task
        return WindowPlacer(self, self.view(layout))

    def move(self, before: WindowLayout, after: WindowLayout, files: Files) -> "WindowPlacing":
        """To all channels that compute a window of a row."""
        del files
        old, new = self.view(before), self.view(after)
        return WindowPlacing(old, new, self.slices or TIME, self.width, self.offset)

    def steering(self, settings: Settings, files: Files) -> "WindowSteering":
        """By what windows cost."""
        return WindowSteering(self, settings, files)


@dataclass(frozen=True)
class WindowPlacer:
    """Rows go to every channel that computes one of their windows."""

    distribution: ByWindow
    windows: WindowChannels

    @property
    def channels(self) -> int:
        """Those that compute windows."""
        return self.windows.channels

    def place(self, rows: Any) -> Placed:
        """A copy for each such channel."""
        return self.windows.deliveries(self.distribution.times(rows))


@dataclass(frozen=True)
class Batched:
    """How the windows of a stage were shared out in an epoch, and what they cost.

    `size` windows are computed together, or will be from a boundary on if the size is `changing`. Windows are
    `length` long and come every `slide`, in microseconds. The epoch had so many `rows`, copies aside, and
    computed so many `windows`. A window took `window_seconds` over the last epochs; `row_seconds` is what a
    row that came to a channel took beside that.
    """

    size: int
    length: int
    slide: int
    rows: int
    windows: float
    window_seconds: float
    row_seconds: float
    changing: bool = False


@dataclass
class WindowSteering(Steering):
    """Changes the size of batches, as asked for."""

    costs: LearntCosts = field(default_factory=LearntCosts)

    def first(self, channels: int, sample: Sample) -> WindowLayout:
        """Batches of the first size."""
        del sample
        return self._layout(channels, Batches(self.distribution.batch), None)

    def follow(
        self, before: WindowLayout, asked: Mapping[str, Any], held: Held, sample: Sample
    ) -> WindowLayout:
        """The batches as before, or of the size that is asked for from the next boundary on."""
        del sample
        size = asked["batch"].value if "batch" in asked else None
        return self._layout(self.channels(before, asked), self._batches(before.batches, held, size), held)

    def _layout(self, channels: int, batches: Batches, held: Held | None) -> WindowLayout:
        forming = None
        if self.distribution.mergeable:
            forming = dealt(self.settings.dealing, channels, held, keyed=False)
        return WindowLayout(channels=channels, batches=batches, forming=forming)

    def _batches(self, batches: Batches, held: Held, wish: int | None) -> Batches:
        """The earlier size is forgotten when no row that is kept has a window before the boundary."""
        if self.distribution.fixed:
            return batches
        if held.bounds is None:
            return Batches(wish or batches.size)
        ends = np.array([held.bounds[0], held.bounds[1] - 1])
        first, last = window_range(self.distribution.shape, ends)
        batches = batches.settled(int(first[0]))
        if wish is None or wish == batches.size or batches.earlier is not None:
            return batches
        return batches.changed(wish, beyond=int(last[1]))

    def learn(self, layout: WindowLayout, receipts: Sequence[Receipt]) -> None:
        """What windows cost."""
        del layout
        self.costs.update([each for one in receipts if (each := one.learnt)])

    def measures(self, epoch: int) -> bool:
        """Where sizes may change."""
        del epoch
        return not self.distribution.fixed

    def choices(self) -> tuple[str, ...]:
        """The size of batches."""
        return () if self.distribution.fixed else ("batch",)

    def check(self, change: Any) -> None:
        """Another size needs a stage that leaves it to the run."""
        if change.setting == "batch" and change.value >= 1 and not self.distribution.fixed:
            return
        super().check(change)

    def told(self, before: WindowLayout, after: WindowLayout) -> Iterator[Told]:
        """Another size of batches."""
        if before.batches.size != after.batches.size:
            words = f"batches of {after.batches.size} from window {after.batches.start:,} on"
            yield Told("batch", words, "the plan of an earlier try")

    def observed(self, measured: Measured) -> dict[str, Any]:
        """How windows were shared out, if plans may change that and something was measured."""
        return {**super().observed(measured), "batched": self._batched(measured)}

    def _batched(self, measured: Measured) -> "Batched | None":
        known, layout, shape = self.costs.known, measured.layout, self.distribution.shape
        if self.distribution.fixed or known is None:
            return None
        learnt = [each for one in measured.receipts if (each := one.learnt)]
        computing = sum((each.cpu if known.clock == "cpu" else each.wall).total for each in learnt)
        busy = sum(each.cpu_seconds if known.clock == "cpu" else each.seconds for each in measured.receipts)
        received = sum(each.received for each in measured.receipts)
        return Batched(
            size=layout.batches.size,
            length=shape.size,
            slide=shape.slide,
            rows=sum(each.tuples for each in measured.receipts),
            windows=sum(each.rows.total for each in learnt),
            window_seconds=known.mean,
            row_seconds=max(busy - computing, 0.0) / received if received else 0.0,
            changing=layout.batches.earlier is not None,
        )


@dataclass(frozen=True)
class WindowPlacing(Placing):
    """State that lies on every channel that computes one of its windows.

    A row's time is that of its bucket in `column`, each `width` long from `offset` on.
    """

    before: WindowChannels
    after: WindowChannels
    column: str = TIME
    width: int = 1
    offset: int = 0

    kind: ClassVar[str] = "window"
    coarse: ClassVar[bool] = False

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """By the windows of the times in a segment; of many times some are looked up."""
        del port
        if self.before == self.after:
            return {source: None}
        first, end = bounds
        few = end - first <= _MOST_TIMES
        buckets = np.arange(first, end) if few else np.linspace(first, end - 1, _MOST_TIMES).astype(np.int64)
        shares = {
            target: float(self._taken(buckets, source, target).mean()) if len(buckets) else 0.0
            for target in range(self.after.channels)
        }
        return {target: share for target, share in shares.items() if share or not few}

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """What is needed stays; the copy of the last window goes to channels that need the row anew.

        Every live row is on all channels of its windows: copies die together, by time.
        """
        return self._taken(read.column(self.column).to_numpy(), source, target)

    def _taken(self, buckets: Numbers, source: int, target: int) -> Mask:
        times = buckets * self.width + self.offset
        needed = _delivered(self.after, times, target)
        if source == target:
            return needed
        sent: Mask = needed & ~_delivered(self.before, times, target) & (self.before.last(times) == source)
        return sent

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Plain values of both layouts."""
        return asdict(self), []

    @classmethod
    def unpacked(cls, values: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> "WindowPlacing":
        """The same placing."""
        del arrays
        before, after = (
            WindowChannels(WindowShape(**each["shape"]), Batches.from_json(each["batches"]), each["channels"])
            for each in (values["before"], values["after"])
        )
        return cls(before, after, values["column"], values["width"], values["offset"])


def _delivered(windows: WindowChannels, times: Numbers, channel: int) -> Mask:
    """Whether a channel computes a window of each time."""
    rows, channels = windows.deliveries(times)
    found = np.zeros(len(times), np.bool_)
    found[rows[channels == channel]] = True
    return found
