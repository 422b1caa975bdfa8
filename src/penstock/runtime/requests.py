"""What users and policies ask of the stages of a run; the next plan follows it, durable before its epoch."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.compile import is_single
from penstock.control.pace import Pace
from penstock.control.rescale import Rescale
from penstock.control.ruling import OVERRULED
from penstock.control.scale import Scale
from penstock.distribution.distribution import Change, Steering
from penstock.errors import BadRescale
from penstock.runtime.records import StagePlan
from penstock.runtime.stage import StageRunner

__all__ = ["Asked", "Requests"]

Asked = Mapping[tuple[int, str], Any]
"""Requests by stage and setting."""


@dataclass
class Requests:
    """The open requests, one for each setting of a stage, and what makes layouts of them.

    `steering` is that of each stage with channels of its own.
    """

    runners: Sequence[StageRunner]
    steering: Mapping[int, Steering]
    _asked: dict[tuple[int, str], Any] = field(default_factory=dict)
    _under_way: dict[int, list[threading.Event]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, wish: Rescale) -> threading.Event:
        """Take a user's request for the next plan, in place of an earlier one; an event for its end."""
        self.check(wish)
        done = threading.Event()
        with self._lock:
            self._asked[wish.stage, wish.setting] = wish
            self._under_way.setdefault(wish.stage, []).append(done)
        return done

    def offer(self, wish: Change | Rescale) -> bool:
        """Take a request of a policy for the next plan, unless there is one for channels already."""
        with self._lock:
            if isinstance(wish, Rescale) and (wish.stage, wish.setting) in self._asked:
                return False
            self._asked[wish.stage, wish.setting] = wish
        return True

    def settle(self, stages: Sequence[StagePlan]) -> None:
        """After an epoch with these plans: wake those who wait for a stage whose state has all moved."""
        with self._lock:
            for number, plan in enumerate(stages):
                asked = (number, Rescale.setting) in self._asked
                if plan.layout is not None and not asked and not self.steering[number].moving(plan.layout):
                    for done in self._under_way.pop(number, []):
                        done.set()

    def asked(self) -> dict[tuple[int, str], Any]:
        """What the next plan has to follow."""
        with self._lock:
            return dict(self._asked)

    def planned(self, followed: Asked) -> None:
        """Drop these requests: they are now part of a durable plan."""
        with self._lock:
            for place, wish in followed.items():
                if self._asked.get(place) is wish:
                    del self._asked[place]

    def check_decision(self, wanted: Any) -> str:
        """Check what a policy decided; why it is held back if a user has asked for something else.

        Executors and pace concern no stage.
        """
        if isinstance(wanted, Scale | Pace):
            return ""
        self.check(wanted)
        with self._lock:
            asked = isinstance(wanted, Rescale) and (wanted.stage, wanted.setting) in self._asked
        return OVERRULED if asked else ""

    def check(self, wish: Change | Rescale) -> None:
        """Check that a stage can have what is requested; raise `BadRescale` if it cannot."""
        if not isinstance(wish, Change | Rescale):
            raise BadRescale(f"a request is {type(wish).__name__}; give a Rescale(stage, channels)")
        if wish.stage not in self.steering:
            exists = 0 <= wish.stage < len(self.runners)
            host = self.runners[wish.stage].stage.host if exists else None
            why = f"runs in the channels of stage {host}" if exists else "does not exist"
            others = ", ".join(map(str, self.steering))
            raise BadRescale(f"stage {wish.stage} {why}; rescale one of {others}")
        single = is_single(self.runners[wish.stage].stage)
        if single and isinstance(wish, Rescale) and wish.channels > 1:
            raise BadRescale(
                f"stage {wish.stage} has no key to partition its state by, so it has one channel, "
                f"not {wish.channels}; group or join by a key to have more"
            )
        self.steering[wish.stage].check(wish)
