"""What a change of router costs: 1 is one channel's fair share of state (003, Eq. 9-12)."""

from penstock.routing.router import Costs, Hashes, Router, moves

__all__ = ["relative_migration"]


def relative_migration(before: Router, after: Router, hashes: Hashes, state: Costs) -> float:
    """State that moves over the mean state of a channel under `after`; `state` is each key's."""
    return moves(before, after, hashes, state).cost * after.channels / float(state.sum())
