"""The controller of a run: hands observations to its policies, and rules on what they decide.

It has no clock and does no I/O. The same observations from the same state give the same rulings. A policy
that fails changes nothing: the last plan is kept, and the failure is a ruling of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.checks import one_of
from penstock.control.limits import Budget, Limits
from penstock.control.observation import Observation
from penstock.control.policy import Policy
from penstock.control.rescale import Rescale
from penstock.control.ruling import Decided, Ruling
from penstock.control.scale import Scale
from penstock.distribution.distribution import Change
from penstock.errors import BadOption, PenstockError

__all__ = ["MODES", "MOST_FAILURES", "Controller", "Mode", "RunPolicy"]

Mode = Literal["on", "observe", "off"]
MODES: tuple[Mode, ...] = ("on", "observe", "off")
"""Decisions are carried out; they are told and held back; policies are not asked."""

MOST_FAILURES = 5
"""A policy that fails so many times in a row is switched off."""

RunPolicy = Policy[Observation, Decided]


@dataclass
class Controller:
    """Policies by name, in the order in which they rule; a stage follows one decision in an epoch.

    `check` raises a `PenstockError` for a decision that cannot be met.
    """

    policies: Mapping[str, RunPolicy]
    limits: Limits = field(default_factory=Limits)
    mode: Mode = "on"
    check: Callable[[Decided], None] | None = None
    _failures: dict[str, int] = field(default_factory=dict, init=False)
    _failed: list[Ruling] = field(default_factory=list, init=False)
    _budget: Budget = field(init=False)
    _epoch: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        one_of("control", self.mode, MODES, BadOption)
        self._budget = Budget(self.limits)

    def observe(self, seen: Observation) -> None:
        """Take in what there is to know about an epoch."""
        self._epoch = seen.epoch
        self._budget.observe(seen)
        for name in self._asked():
            self._guarded(name, lambda policy: policy.observe(seen))

    def decide(self, now: float) -> list[Ruling]:
        """What the policies want changed, and what becomes of it; failures first."""
        rulings: list[Ruling] = []
        taken: set[tuple[str, int]] = set()
        broken = {each.policy for each in self._failed}
        for name in self._asked():
            if name in broken:
                continue
            wanted = self._guarded(name, lambda policy: _checked(policy.decide(now)))
            if wanted is not None:
                self._failures.pop(name, None)
                rulings += [self._rule(name, each, taken, now) for each in wanted]
        failed, self._failed = self._failed, []
        return failed + rulings

    def started(self) -> None:
        """Give policies that were switched off another chance; for a run that starts again."""
        self._failures.clear()

    def to_json(self) -> dict[str, Any]:
        """All that controller, limits and policies remember."""
        states = {}
        for name in self.policies:
            state = self._guarded(name, lambda policy: policy.to_json())
            if state is not None:
                states[name] = state
        return {"failures": dict(self._failures), "limits": self._budget.to_json(), "policies": states}

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave; policies that it does not name begin anew."""
        self._failures = dict(value["failures"])
        self._budget.resume(value["limits"])
        for name, state in value["policies"].items():
            if name in self.policies:
                self._resume(name, state)

    def _resume(self, name: str, state: Mapping[str, Any]) -> None:
        self._guarded(name, lambda policy: policy.resume(state))

    def _asked(self) -> list[str]:
        """The policies that are not switched off."""
        if self.mode == "off":
            return []
        return [name for name in self.policies if self._failures.get(name, 0) < MOST_FAILURES]

    def _guarded(self, name: str, call: Callable[[RunPolicy], Any]) -> Any:
        """What the call gives, or None and a note if it fails."""
        try:
            return call(self.policies[name])
        except Exception as error:  # noqa: BLE001 -- a policy may be the user's code and raise anything
            count = self._failures.get(name, 0) + 1
            self._failures[name] = count
            words = f"the policy failed, the last plan is kept: {type(error).__name__}: {error}"
            if count >= MOST_FAILURES:
                words += f"; after {count} failures in a row it is switched off until the next start"
            self._failed.append(Ruling(self._epoch, name, None, words))
            return None

    def _rule(self, name: str, wanted: Decided, taken: set[tuple[str, int]], now: float) -> Ruling:
        held = self._why_not(wanted, taken, now)
        if not held:
            taken.add((_setting(wanted), wanted.stage))
            self._budget.carry_out(wanted, now)
        return Ruling(self._epoch, name, wanted, held)

    def _why_not(self, wanted: Decided, taken: set[tuple[str, int]], now: float) -> str:
        if isinstance(wanted, Scale) and wanted.held:
            return wanted.held
        try:
            if self.check is not None:
                self.check(wanted)
        except PenstockError as error:
            return f"it cannot be met: {error}"
        if self.mode == "observe":
            return "dry run"
        if (_setting(wanted), wanted.stage) in taken:
            return "another decision for this stage comes first"
        return self._budget.why_not(wanted, now)


def _setting(wanted: Decided) -> str:
    return wanted.pool if isinstance(wanted, Scale) else wanted.setting


def _checked(wanted: Sequence[Any]) -> list[Decided]:
    found = list(wanted)
    for each in found:
        if not isinstance(each, Rescale | Change | Scale):
            raise TypeError(f"it decided {type(each).__name__}; give Rescale, Change or Scale")
    return found
