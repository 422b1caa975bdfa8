"""A strategy of [000] with scale-in: the planner that the published strategies run in."""

from dataclasses import dataclass

from penstock.control.admission.algorithm import Rules, Strategy, assign
from penstock.control.admission.cluster import Cluster, Floats, Outlook, Placement
from penstock.control.admission.scale_in import scale_in

__all__ = ["Packing"]


@dataclass(frozen=True)
class Packing:
    """Algorithm 1 with a strategy's parts, then the emptiest gate drained if that is quiet.

    `bound` is the latency above which a gate is overloaded, `accept` the part of its capacity below which
    it takes streams, `mark` the part that scale-in may fill.
    """

    strategy: Strategy
    bound: float = 5.0
    accept: float = 0.95
    mark: float = 0.85

    @property
    def name(self) -> str:
        """The strategy's."""
        return self.strategy.name

    def plan(self, cluster: Cluster, outlook: Outlook, most: int) -> Placement:
        """Where every stream is to be."""
        placed = assign(self.strategy, cluster, outlook, Rules(self.bound, self.accept, most))
        return placed if self.strategy.afresh else scale_in(cluster, placed, mark=self.mark, most=most)

    def charged(self, outlook: Outlook) -> Floats:
        """As the strategy counts."""
        return self.strategy.charged(outlook)
