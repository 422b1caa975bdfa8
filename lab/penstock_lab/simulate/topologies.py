"""The three topologies of [001] §7.2: insensitive, sensitive and complex; open costs are ours.

The observed operator costs 20 ms a tuple, or 1 to 64 ms by its value, of which there are 4,096. In the
complex one a dispatcher drops three tenths of the topics, one branch looks up the city of a code and
analyses it, another does the same by age, and a persister stores what the analysers find.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.control.scaling import Edge
from penstock_lab.simulate.elastic import Operator
from penstock_lab.simulate.groupings import Grouping

__all__ = ["TOPOLOGIES", "VALUES", "Topology"]

Floats = NDArray[np.float64]
Made = Callable[[int], Grouping]

VALUES = 4_096


@dataclass(frozen=True)
class Topology:
    """Operators, the place of the one that is observed, and tuples that reach it for each from outside."""

    operators: tuple[Operator, ...]
    observed: int
    reaching: float

    def rate(self, shares: Floats) -> float:
        """Tuples a second from outside that keep one unit of the observed operator busy."""
        cost = self.operators[self.observed].cost
        mean = float(cost @ shares) if isinstance(cost, np.ndarray) else float(cost)
        return 1 / (mean * self.reaching)


def _insensitive(_rng: np.random.Generator, _grouping: Made) -> Topology:
    operators = (
        Operator("source", 0.0005),
        Operator("bolt", 0.02, (Edge(0),)),
        Operator("finish", 0.0005, (Edge(1),)),
    )
    return Topology(operators, 1, 1.0)


def _sensitive(rng: np.random.Generator, grouping: Made) -> Topology:
    operators = (
        Operator("source", 0.0005),
        Operator("bolt", _by_value(rng, 64), (Edge(0),), grouping),
        Operator("finish", 0.0005, (Edge(1),)),
    )
    return Topology(operators, 1, 1.0)


def _complex(rng: np.random.Generator, grouping: Made) -> Topology:
    relevant = 0.7
    operators = (
        Operator("source", 0.0005),
        Operator("dispatcher", 0.002, (Edge(0),)),
        Operator("city", _by_value(rng, 64), (Edge(1, relevant),), grouping),
        Operator("age", _by_value(rng, 32), (Edge(1, relevant),), grouping),
        Operator("city analyser", 0.008, (Edge(2),)),
        Operator("age analyser", 0.008, (Edge(3),)),
        Operator("persister", 0.002, (Edge(4, 0.5), Edge(5, 0.5))),
    )
    return Topology(operators, 2, relevant)


def _by_value(rng: np.random.Generator, most: int) -> Floats:
    return rng.integers(1, most + 1, VALUES) / 1_000


TOPOLOGIES: Mapping[str, Callable[[np.random.Generator, Made], Topology]] = {
    "insensitive": _insensitive,
    "sensitive": _sensitive,
    "complex": _complex,
}
