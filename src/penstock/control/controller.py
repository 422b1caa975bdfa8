"""The controller: hands observations to policies, and rules on what they propose.

There is one for a run and one for gates. It has no clock and does no I/O: the same observations from the same
state give the same rulings. A proposal is carried out if it pays: what it saves, for as long as its cause has
lasted, exceeds its price. Its changes are made together or not at all, and of proposals for the same setting
the most valuable one is. That a policy proposes nothing, and why, is a ruling too, told when the reason was
not told lately. A policy that fails changes nothing.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from penstock.checks import one_of
from penstock.control.objective import CPU_PRICE
from penstock.control.outcomes import Outcomes
from penstock.control.policy import Policy
from penstock.control.proposal import LONGEST, Proposal
from penstock.control.ruling import DRY_RUN, OVERRULED, Ruling
from penstock.errors import BadOption, PenstockError
from penstock.shown import shown_seconds

__all__ = ["MODES", "MOST_FAILURES", "Controller", "Mode", "Seen"]

Mode = Literal["on", "observe", "off"]
MODES: tuple[Mode, ...] = ("on", "observe", "off")
"""Decisions are carried out; they are told and held back; policies are not asked."""

MOST_FAILURES = 5
"""A policy that fails so many times in a row is switched off."""


class Seen(Protocol):
    """What a controller has to know of an observation."""

    @property
    def epoch(self) -> int:
        """Its number."""

    def costs(self) -> Mapping[int, tuple[float, float]]:
        """What each subject cost by row, and its rows; without subjects that a change is under way for."""


class Change(Protocol):
    """What a controller has to know of a change."""

    @property
    def stage(self) -> int:
        """What it is about."""

    @property
    def setting(self) -> str:
        """What of that it changes."""

    def subject(self) -> str:
        """The change in a few words."""


class Budget(Protocol):
    """What limits still allow."""

    def observe(self, seen: Any) -> None:
        """Take in what happened."""

    def why_not(self, change: Any, now: float) -> str:
        """The limit that holds a change back; empty if none does."""

    def carry_out(self, change: Any, now: float) -> None:
        """Count a change."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from them."""


SeenT = TypeVar("SeenT", bound=Seen)
ChangeT = TypeVar("ChangeT", bound=Change)


@dataclass
class Controller(Generic[SeenT, ChangeT]):
    """Policies by name; those that are named first win a tie.

    `check` raises a `PenstockError` for a change that cannot be met, and says why another one is held back.
    """

    policies: Mapping[str, Policy[SeenT, ChangeT]]
    budget: Budget
    mode: Mode = "on"
    check: Callable[[ChangeT], str] | None = None
    cpu_price: float = CPU_PRICE
    outcomes: Outcomes = field(default_factory=Outcomes, init=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False)
    _failed: list[Ruling] = field(default_factory=list, init=False)
    _told: dict[str, dict[str, int]] = field(default_factory=dict, init=False)
    _epoch: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        one_of("control", self.mode, MODES, BadOption)

    def observe(self, seen: SeenT) -> None:
        """Take in what there is to know about an epoch."""
        self._epoch = seen.epoch
        self.budget.observe(seen)
        self.outcomes.observe(seen.costs())
        for name in self._asked():
            self._guarded(name, lambda policy: policy.observe(seen))

    def decide(self, now: float) -> list[Ruling]:
        """What the policies propose, and what becomes of it; failures first."""
        proposed: list[tuple[str, Proposal[ChangeT]]] = []
        broken = {each.policy for each in self._failed}
        for name in self._asked():
            if name in broken:
                continue
            wanted = self._guarded(name, lambda policy: _checked(policy.propose(now)))
            if wanted is not None:
                self._failures.pop(name, None)
                proposed += [(name, each) for each in wanted]
        held = self._arbitrated(proposed, now)
        rulings = []
        for (name, each), why in zip(proposed, held, strict=True):
            rulings += self._ruled(name, each, why)
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
        return {
            "failures": dict(self._failures),
            "told": {subject: dict(each) for subject, each in self._told.items()},
            "limits": self.budget.to_json(),
            "outcomes": self.outcomes.to_json(),
            "policies": states,
        }

    def resume(self, value: Mapping[str, Any]) -> None:
        """Continue from what `to_json` gave; policies that it does not name start without a memory."""
        self._failures = dict(value["failures"])
        self._told = {subject: dict(each) for subject, each in value["told"].items()}
        self.budget.resume(value["limits"])
        self.outcomes.resume(value["outcomes"])
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

    def _guarded(self, name: str, call: Callable[[Policy[SeenT, ChangeT]], Any]) -> Any:
        """What the call gives, or None and a note if it fails."""
        try:
            return call(self.policies[name])
        except Exception as error:  # noqa: BLE001 -- a policy may be the user's code and raise anything
            count = self._failures.get(name, 0) + 1
            self._failures[name] = count
            words = f"the policy failed, the last plan is kept: {type(error).__name__}: {error}"
            if count >= MOST_FAILURES:
                words += f"; after {count} failures in a row it is switched off until the next start"
            self._failed.append(Ruling(self._epoch, name, None, words, failed=True))
            return None

    def _arbitrated(self, proposed: Sequence[tuple[str, Proposal[ChangeT]]], now: float) -> list[str]:
        """Why each proposal is held back; empty where it is carried out."""
        held = [self._why_not(name, each, now) for name, each in proposed]
        order = sorted(range(len(proposed)), key=lambda place: -self._net(*proposed[place]))
        taken: set[Hashable] = set()
        for place in order:
            name, each = proposed[place]
            if held[place] or not each.changes:
                continue
            subjects = {(change.stage, change.setting) for change in each.changes}
            held[place] = "a proposal for the same setting is worth more" if subjects & taken else ""
            # What was carried out just now counts too.
            held[place] = held[place] or self._limit(each, now)
            if held[place]:
                continue
            taken |= subjects
            if each.measures:
                continue
            for change in each.changes:
                self.budget.carry_out(change, now)
            stages = sorted({change.stage for change in each.changes})
            self.outcomes.took(name, stages, each.effect.worth(self.cpu_price), self._epoch)
        return held

    def _net(self, name: str, proposal: Proposal[ChangeT]) -> float:
        """What a proposal is worth after its price, in seconds; what is urgent comes first."""
        if proposal.urgent:
            return float("inf")
        return proposal.effect.net(self.cpu_price, self._trust(name, proposal))

    def _trust(self, name: str, proposal: Proposal[ChangeT]) -> float:
        return min((self.outcomes.trust(name, each.stage) for each in proposal.changes), default=1.0)

    def _why_not(self, name: str, proposal: Proposal[ChangeT], now: float) -> str:
        """Why a proposal is not carried out, whatever the others are."""
        if proposal.held or not proposal.changes:
            return proposal.held
        for change in proposal.changes:
            try:
                if self.check is not None and (why := self.check(change)):
                    return why
            except PenstockError as error:
                return f"it cannot be met: {error}"
        if self._net(name, proposal) <= 0:
            effect, trust = proposal.effect, self._trust(name, proposal)
            doubted = f", of which {trust:.0%} came true lately" if trust < 1 else ""
            return (
                f"not worth its price of {shown_seconds(effect.price)} yet: "
                f"{shown_seconds(effect.worth(self.cpu_price))} an epoch for {effect.epochs} epochs{doubted}"
            )
        if self.mode == "observe":
            return DRY_RUN
        return self._limit(proposal, now)

    def _limit(self, proposal: Proposal[ChangeT], now: float) -> str:
        """The limit that holds a proposal back; empty if none does."""
        if proposal.measures:
            return ""
        return next((why for each in proposal.changes if (why := self.budget.why_not(each, now))), "")

    def _ruled(self, name: str, proposal: Proposal[ChangeT], held: str) -> list[Ruling]:
        """The rulings on a proposal; what stays as it is, is told if the reason was not told lately."""
        stages = dict.fromkeys(f"stage {each.stage}" for each in proposal.changes)
        subject = " ".join([name, *(stages or re.findall(r"^stage \d+", proposal.reason))])
        why = held or ("" if proposal.changes else proposal.reason)
        kind = re.sub(r"[\d.,]+( [kMGm]?[Bs]|ms|µs)?", "#", why)
        if self.mode == "observe":
            # Another number of channels is another decision, a wait of another length is not.
            kind += "".join(re.sub(r"\d+\.\d+", "#", each.subject()) for each in proposal.changes)
        if why:
            lately = {
                each: then
                for each, then in self._told.get(subject, {}).items()
                if then > self._epoch - LONGEST
            }
            self._told[subject] = {kind: self._epoch} | lately
            # A replay has to know of each request of a user.
            if kind in lately and held != OVERRULED:
                return []
        effect = proposal.effect if proposal.changes and not proposal.urgent else None
        if not proposal.changes:
            return [Ruling(self._epoch, name, None, proposal.reason)]
        return [Ruling(self._epoch, name, each, held, effect=effect) for each in proposal.changes]


def _checked(wanted: Sequence[Any]) -> list[Proposal[Any]]:
    found = list(wanted)
    for each in found:
        if not isinstance(each, Proposal):
            raise TypeError(f"it proposed {type(each).__name__}; give a Proposal")
    return found
