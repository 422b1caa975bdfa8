"""What changes brought, next to what they were predicted to bring, and how far a policy can be trusted.

The cost of a stage by row is known after each epoch. For a change, the mean of the last epochs before it is
set against that of the first settled epochs after it. A policy whose changes bring less than predicted has
to see larger gains before its next one.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["MOST_OUTCOMES", "Outcome", "Outcomes"]

MOST_OUTCOMES = 1000
"""The number of outcomes that a controller remembers."""

_BEFORE, _SETTLING, _AFTER = 4, 1, 4
"""Epochs before a change that count, that are left out after it, and that count then."""
_OTHER = 4.0
"""A row that costs this many times as much or as little as before is another load, which judges no change."""
_TRUST = 0.5
"""The weight of the newest outcome."""


@dataclass(frozen=True)
class Outcome:
    """A change of an epoch by a policy: seconds an epoch that it was predicted to save, and that it saved."""

    policy: str
    stage: int
    epoch: int
    predicted: float
    measured: float

    def words(self) -> str:
        """In one line.

        >>> Outcome("layout", 0, 7, 0.5, 0.4).words()
        'layout, stage 0, epoch 7: predicted 500.0 ms an epoch, measured 400.0 ms'
        """
        predicted, measured = (f"{1000 * each:.1f} ms" for each in (self.predicted, self.measured))
        head = f"{self.policy}, stage {self.stage}, epoch {self.epoch:,}"
        return f"{head}: predicted {predicted} an epoch, measured {measured}"


@dataclass
class Outcomes:
    """Follows the cost of subjects, such as stages, and judges each change of them once."""

    done: deque[Outcome] = field(default_factory=lambda: deque(maxlen=MOST_OUTCOMES))
    _costs: dict[int, list[float]] = field(default_factory=dict)
    _open: list[dict[str, Any]] = field(default_factory=list)
    _trust: dict[str, float] = field(default_factory=dict)

    def observe(self, costs: Mapping[int, tuple[float, float]]) -> None:
        """Take in an epoch: cost by row and rows of each subject whose layout did not change in it."""
        for subject, (cost, rows) in costs.items():
            self._costs[subject] = [*self._costs.get(subject, []), cost][-_BEFORE:]
            for each in self._open:
                if each["stage"] == subject:
                    each["after"].append(cost)
                    each["rows"].append(rows)
        for each in [one for one in self._open if len(one["after"]) >= _SETTLING + _AFTER]:
            self._open.remove(each)
            self._judge(each)

    def took(self, policy: str, subjects: Sequence[int], predicted: float, epoch: int) -> None:
        """A change is made; what it brings is judged if it is a single subject's, and not judged already."""
        self._open = [each for each in self._open if each["stage"] not in subjects]
        before = [self._costs.pop(subject, []) for subject in subjects]
        if len(subjects) == 1 and predicted > 0 and before[0]:
            cost = sum(before[0]) / len(before[0])
            self._open.append(
                {"policy": policy, "stage": subjects[0], "epoch": epoch, "predicted": predicted}
                | {"before": cost, "after": [], "rows": []}
            )

    def trust(self, policy: str, subject: int) -> float:
        """What part of a prediction has come true lately, from a quarter to 1."""
        return min(max(self._trust.get(f"{policy} {subject}", 1.0), 0.25), 1.0)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "done": [asdict(each) for each in self.done],
            "costs": {str(subject): list(each) for subject, each in self._costs.items()},
            "open": [dict(each) for each in self._open],
            "trust": dict(self._trust),
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave."""
        self.done = deque((Outcome(**each) for each in value["done"]), maxlen=MOST_OUTCOMES)
        self._costs = {int(subject): list(each) for subject, each in value["costs"].items()}
        self._open = [
            {**each, "after": list(each["after"]), "rows": list(each["rows"])} for each in value["open"]
        ]
        self._trust = dict(value["trust"])

    def _judge(self, change: Mapping[str, Any]) -> None:
        after, rows = change["after"][_SETTLING:], change["rows"][_SETTLING:]
        cost = sum(after) / len(after)
        if not 1 / _OTHER < cost / change["before"] < _OTHER:
            return
        measured = (change["before"] - cost) * sum(rows) / len(rows)
        given = {name: change[name] for name in ("policy", "stage", "epoch", "predicted")}
        self.done.append(Outcome(**given, measured=measured))
        name = f"{change['policy']} {change['stage']}"
        before = self._trust.get(name, 1.0)
        came_true = min(max(measured / change["predicted"], 0.0), 1.5)
        self._trust[name] = before + _TRUST * (came_true - before)
