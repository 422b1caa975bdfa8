"""Keeps requests of a policy that cannot be met, and failures of the policy, away from the run."""

import logging
from collections.abc import Callable

from penstock.control.observation import Observation
from penstock.control.rebalance_when import rebalance_when
from penstock.control.rescale import Rescale
from penstock.errors import BadRescale
from penstock.runtime.observation import Policy

__all__ = ["guarded", "rebalance_when"]

_log = logging.getLogger("penstock.run")


def guarded(policy: Policy, check: Callable[[Rescale], None]) -> Policy:
    """The same policy without requests that cannot be met; `check` raises `BadRescale` for those."""

    def wishes(seen: Observation) -> list[Rescale]:
        try:
            asked = list(policy(seen))
        except Exception:  # noqa: BLE001 -- a policy is the user's code and may raise anything
            _log.exception("epoch %d: the policy failed; channels stay as they are", seen.epoch)
            return []
        return [wish for wish in asked if possible(wish, seen.epoch)]

    def possible(wish: Rescale, epoch: int) -> bool:
        try:
            check(wish)
        except BadRescale as error:
            _log.error("epoch %d: the policy made a request that cannot be met: %s", epoch, error)
            return False
        return True

    return wishes
