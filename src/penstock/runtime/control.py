"""The loop of a run: after each committed epoch it observes, decides, and tells the next plan.

Nothing that happens here ends a run: a failure is logged to `penstock.run`, and the last plan is kept.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.control.controller import Controller
from penstock.control.observation import Observation
from penstock.control.pace import Pace
from penstock.control.ruling import OVERRULED, Ruling
from penstock.control.scale import Scale
from penstock.runtime.recording import RecordingFiles
from penstock.runtime.requests import Requests
from penstock.runtime.spark.executors import Executors

__all__ = ["MOST_RULINGS", "RunControl"]

MOST_RULINGS = 1000
"""The number of rulings that a run remembers."""

_log = logging.getLogger("penstock.run")


@dataclass
class RunControl:
    """Asks the controller about each epoch, and keeps what it ruled."""

    controller: Controller[Observation, Any]
    requests: Requests
    recording: RecordingFiles | None = None
    executors: Executors | None = None
    rulings: deque[Ruling] = field(init=False, default_factory=lambda: deque(maxlen=MOST_RULINGS))

    @property
    def silent(self) -> bool:
        """Whether nobody is asked."""
        return self.controller.mode == "off" or not self.controller.policies

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from what `remembered` gave to a manifest."""
        if self.silent:
            return
        try:
            if state:
                self.controller.resume(state)
            self.controller.started()
        except Exception:  # noqa: BLE001 -- a policy may be the user's code and raise anything
            _log.exception("the controller begins anew: what it remembered cannot be read")

    def remembered(self) -> Mapping[str, Any]:
        """What the controller remembers, for the manifest of the epoch that is about to be committed."""
        if self.silent:
            return {}
        try:
            return self.controller.to_json()
        except Exception:  # noqa: BLE001 -- a policy may be the user's code and raise anything
            _log.exception("what the controller remembers is not part of this manifest")
            return {}

    def after(self, epoch: int, observed: Callable[[], Observation]) -> list[Ruling]:
        """Observe a committed epoch; what is decided goes to the next plan."""
        try:
            seen = observed()
            if self.recording is not None:
                self.recording.begin()
            self.controller.observe(seen)
            rulings = [self._followed(each) for each in self.controller.decide(seen.committed)]
            for each in rulings:
                _tell(each)
            # The wait after each epoch is told with its progress; here it would drive out all else.
            self.rulings.extend(each for each in rulings if not isinstance(each.decision, Pace))
            if self.recording is not None:
                self.recording.add(seen, rulings)
        except Exception:  # noqa: BLE001 -- a policy may be the user's code and raise anything
            _log.exception("epoch %d: control failed; the last plan is kept", epoch)
            return []
        return rulings

    def close(self) -> None:
        """Write the rest of the recording."""
        if self.recording is not None:
            self.recording.close()

    def _followed(self, ruling: Ruling) -> Ruling:
        """The ruling, held back if a user has asked for something else in the meantime."""
        wanted = ruling.decision
        if wanted is None or not ruling.carried_out:
            return ruling
        if isinstance(wanted, Pace):
            return ruling
        if isinstance(wanted, Scale):
            # No task runs between two epochs, so none is lost with an executor.
            if self.executors is not None:
                self.executors.request(wanted.units)
            return ruling
        return ruling if self.requests.offer(wanted) else replace(ruling, held=OVERRULED)


def _tell(ruling: Ruling) -> None:
    """Log what went wrong; what is carried out is logged when it has happened."""
    impossible = ruling.held.startswith("it cannot be met")
    _log.log(logging.ERROR if ruling.failed or impossible else logging.DEBUG, "%s", ruling.words())
