"""What a scaling policy sees of a tick: operators in topological order, and the pools of units that run them.

The simulated cluster and a run on Spark fill the same values. In a Storm-like cluster every operator has a
pool of its own; on Spark all stages take turns on one pool of cores. All work is counted in seconds of the
processor, so that operators that share a pool can be added up.
"""

import math
from dataclasses import dataclass

from penstock.control.expected import Expected
from penstock.errors import BadScaling

__all__ = ["Edge", "Load", "OperatorLoad", "PoolLoad"]


@dataclass(frozen=True)
class Edge:
    """Where tuples come from: the place of the parent among the operators, and tuples here for each there."""

    parent: int
    selectivity: float = 1.0


@dataclass(frozen=True)
class OperatorLoad:
    """One operator in a tick: tuples that arrived, that were processed, and that wait at its end.

    `cpu` is what a tuple costs in seconds of the processor, NaN while none was processed. `latency` is the
    mean time that tuples of this tick waited and ran here. An operator without parents is fed from outside;
    `expected` is what those outside say will come, if anybody does.
    """

    name: str
    pool: str
    received: float
    processed: float
    pending: float
    cpu: float
    parents: tuple[Edge, ...] = ()
    latency: float = 0.0
    expected: Expected | None = None


@dataclass(frozen=True)
class PoolLoad:
    """Units that run operators: how many are ready and starting, and what each used of its core in the tick.

    `shared` has for each unit what it lost of its core to others while it had work, and how many threads
    that core has, for Eq. 7 of [001]; empty if units have cores of their own. `startup` and `pause` are the
    seconds that a new unit and a change of their number take, as far as they have been measured, else NaN.
    """

    name: str
    units: int
    use: tuple[float, ...] = ()
    starting: int = 0
    changing: bool = False
    shared: tuple[tuple[float, int], ...] = ()
    startup: float = math.nan
    pause: float = math.nan

    @property
    def present(self) -> int:
        """Units that are ready or will be."""
        return self.units + self.starting

    @property
    def lost(self) -> tuple[float, ...]:
        """The share of the tick in which each unit had work and others had its core."""
        return tuple(others for others, _ in self.shared) or (0.0,) * len(self.use)

    @property
    def busy(self) -> tuple[float, ...]:
        """The share of the tick in which each unit had work, whether it got its core or not."""
        return tuple(min(use + lost, 1.0) for use, lost in zip(self.use, self.lost, strict=True))

    @property
    def mean_busy(self) -> float:
        """The busy share of all units; 0 if nothing is known."""
        return sum(self.busy) / len(self.use) if self.use else 0.0

    @property
    def got(self) -> float:
        """The share of their cores that units got while they had work; 1 if they had none.

        >>> PoolLoad("cores", 2, use=(0.3, 0.1), shared=((0.3, 2), (0.1, 2))).got
        0.5
        """
        used, lost = sum(self.use), sum(self.lost)
        return used / (used + lost) if used else 1.0


@dataclass(frozen=True)
class Load:
    """A tick: its end in seconds since 1970, its length, and all that was measured.

    `latency` is the result latency of the tick that the bound is about, NaN if nobody measures it. `fixed`
    is what results take however many units there are: the seconds of an epoch without rows.
    """

    at: float
    seconds: float
    operators: tuple[OperatorLoad, ...]
    pools: tuple[PoolLoad, ...]
    latency: float = math.nan
    fixed: float = 0.0

    def __post_init__(self) -> None:
        known = {each.name for each in self.pools}
        for place, each in enumerate(self.operators):
            if each.pool not in known:
                raise BadScaling(
                    f"operator {each.name!r} runs in pool {each.pool!r}; there are {sorted(known)}"
                )
            if any(not 0 <= edge.parent < place for edge in each.parents):
                raise BadScaling(
                    f"operator {each.name!r} at place {place} has parents {each.parents}; give operators in "
                    "topological order"
                )
        if not self.seconds > 0:
            raise BadScaling(f"a tick of {self.seconds} seconds; give a length above 0")

    @property
    def problem(self) -> str:
        """What is wrong with the measures, in words; empty if they can be used."""
        for each in self.operators:
            for name in ("received", "pending"):
                value = getattr(each, name)
                if not math.isfinite(value) or value < 0:
                    return f"{name} of {each.name} is {value}"
        return ""

    def pool(self, name: str) -> PoolLoad:
        """The pool of this name."""
        return next(each for each in self.pools if each.name == name)

    def within(self, pool: str) -> list[int]:
        """The places of the operators in a pool."""
        return [place for place, each in enumerate(self.operators) if each.pool == pool]
