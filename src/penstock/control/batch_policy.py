"""Chooses how many neighbouring windows one channel computes, from what rows and windows cost ([004] §2.3).

After each epoch the costs of Equation 1 are known: what a window took, and what a row took beside that. With
the rate at which rows arrive, `choose_batch` gives the smallest batch that keeps the latency bound, or that
with the least backlog. A channel gets one copy of a row whatever the number of its windows there, so batches
pay only where they are longer than keeps all channels busy at every instant. An epoch computes all windows
that it closes at its end, so channels stay busy as long as it closes a batch for each of them: that is the
limit, if it is the higher one. Another size has to be better for a few epochs in a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.control.bound import DEFAULT_BOUND
from penstock.control.observation import Batched, Observation, StageChannels
from penstock.control.proposal import Proposal
from penstock.distribution.distribution import Change
from penstock.routing import BatchModel, TupleCosts, WindowShape, busy_limit, channel_copies, choose_batch
from penstock.shown import shown_seconds

__all__ = ["BatchPolicy", "modelled"]

_LASTS: Final = 3
"""Another size has to be chosen for so many epochs in a row."""
_MOST: Final = 4_096
"""The longest batch."""


@dataclass
class BatchPolicy:
    """Keeps the delay of results below `bound` seconds; `period` is how long a choice lasts, in seconds."""

    bound: float = DEFAULT_BOUND
    period: float = 60.0
    headroom: float = 0.1
    _wanted: dict[int, tuple[int, int]] = field(default_factory=dict, init=False)
    _asked: list[Change] = field(default_factory=list, init=False)
    _before: tuple[float, int] | None = field(default=None, init=False)

    def observe(self, seen: Observation) -> None:
        """Take in an epoch; one that closed no window says nothing."""
        then, self._before = self._before, (seen.committed, seen.left)
        self._asked = []
        for stage in seen.stages:
            batched = stage.batched
            if batched is None or not batched.windows or not batched.rows:
                continue
            elapsed = seen.committed - (then[0] if then else seen.started)
            arrived = batched.rows * (1 + (seen.left - (then[1] if then else 0)) / max(seen.rows, 1))
            rate = max(arrived, 1.0) / max(elapsed, 1e-3)
            if (wish := self._judged(stage, batched, rate)) is not None:
                self._asked.append(wish)

    def propose(self, now: float) -> Sequence[Proposal[Change]]:  # noqa: ARG002 -- no clock needed
        """Another size for each stage for which it was better for a while, as the bound of latency asks."""
        asked, self._asked = self._asked, []
        return [Proposal((each,), reason=each.reason, urgent=True) for each in asked]

    def to_json(self) -> dict[str, Any]:
        """Which other sizes have been better, and for how long."""
        wanted = {str(stage): list(each) for stage, each in self._wanted.items()}
        return {"wanted": wanted, "before": None if self._before is None else list(self._before)}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self._wanted = {int(stage): (size, lasted) for stage, (size, lasted) in value["wanted"].items()}
        before = value["before"]
        self._before = None if before is None else (before[0], before[1])

    def _judged(self, stage: StageChannels, batched: Batched, rate: float) -> Change | None:
        channels = len(stage.channels)
        model = modelled(batched, rate, channels, self.headroom)
        limit = min(max(busy_limit(model.shape, channels), int(batched.windows) // channels), _MOST)
        choice = choose_batch(model, period=self.period, bound=self.bound, limit=limit)
        size, lasted = self._wanted.get(stage.stage, (0, 0))
        if choice.batch == batched.size or batched.changing:
            self._wanted.pop(stage.stage, None)
            return None
        lasted = lasted + 1 if size == choice.batch else 1
        self._wanted[stage.stage] = choice.batch, lasted
        if lasted < _LASTS:
            return None
        del self._wanted[stage.stage]
        kept = (
            f"the smallest whose backlog of {shown_seconds(self.period)} takes less than "
            f"{shown_seconds(self.bound)}"
            if choice.within_bound
            else f"none keeps {shown_seconds(self.bound)}, and of up to {limit} it has the least backlog"
        )
        reason = (
            f"batches of {choice.batch} instead of {batched.size} windows: {kept}; a window costs "
            f"{shown_seconds(batched.window_seconds)}, a row {shown_seconds(batched.row_seconds)}, at "
            f"{rate:,.0f} rows/s"
        )
        numbers = {"batch": float(choice.batch), "excess": choice.excess, "delay": choice.delay, "rate": rate}
        shown = f"batches of {choice.batch} window{'s' if choice.batch != 1 else ''}"
        return Change(stage.stage, "batch", choice.batch, reason, numbers, shown=shown)


def modelled(batched: Batched, rate: float, channels: int, headroom: float) -> BatchModel:
    """Equations 1 and 2 with the costs that were measured; sizes are in rows.

    A window costs the same in whatever batch it is computed, so it counts as one opening and closing.
    """
    slide = max(1, round(batched.rows / batched.windows))
    size = max(slide, round(slide * batched.length / batched.slide))
    costs = TupleCosts(0.0, batched.window_seconds, batched.row_seconds)
    return BatchModel(WindowShape(size, slide), costs, rate, channels, headroom, copies=channel_copies)
