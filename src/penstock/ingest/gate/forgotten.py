"""Names readers that seem forgotten, before what is kept for them fills the disk: once, then each hour."""

import logging
from typing import Any, Final

from penstock.ingest.gate.measures import holding, room
from penstock.ingest.gate.readers import remedy
from penstock.ingest.gate.state import GateState
from penstock.ingest.limits import Limits
from penstock.ingest.log.log import Log

__all__ = ["ForgottenReaders"]

_AGAIN_S: Final = 3600.0
_LOGGER = logging.getLogger("penstock.gate")


class ForgottenReaders:
    """The readers of a gate for which rows are kept though they have been silent for long."""

    def __init__(self, state: GateState, log: Log, limits: Limits) -> None:
        self._state, self._log, self._limits = state, log, limits
        self._warned: dict[tuple[str, str], float] = {}
        self.found: tuple[dict[str, Any], ...] = ()
        """As they were last seen: inlet, reader, run, rows, silent_seconds."""

    def look(self, now: float) -> None:
        """See which they are; O(streams) for each silent reader."""
        self.found = holding(self._state, self._log, self._limits, now)
        known = {(each["inlet"], each["reader"]): each for each in self.found}
        self._warned = {each: at for each, at in self._warned.items() if each in known}
        for name, each in known.items():
            if now - self._warned.get(name, -_AGAIN_S) >= _AGAIN_S:
                self._warned[name] = now
                _LOGGER.warning(
                    "reader %s of inlet %s has not committed for %s s, and %s rows are kept for it; the log "
                    "has %s MiB and room for %s more: %s",
                    each["reader"],
                    each["inlet"],
                    f"{each['silent_seconds']:,.0f}",
                    f"{each['rows']:,}",
                    f"{self._log.bytes >> 20:,}",
                    f"{room(self._log, self._limits) >> 20:,}",
                    remedy(each["inlet"], each["reader"], each["run"]),
                )
