"""A proposal: changes that belong together, what they are predicted to bring and cost, and why.

A policy proposes the best change that it sees, epoch after epoch, and how long its cause has lasted; whether
that pays is for the arbiter to say. A proposal without changes says why a policy proposes nothing.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["LONGEST", "NO_EFFECT", "Effect", "Proposal"]

Changed_co = TypeVar("Changed_co", covariant=True)

LONGEST = 64
"""The most epochs that a gain is expected to last, however long its cause has been there: without it, any
small gain would be worth a change in the end, and a stationary stream would never come to rest."""


@dataclass(frozen=True)
class Effect:
    """What changes bring in an epoch like the last ones, and what making them costs once.

    `seconds` and `cpu` are saved in each epoch: time that it takes, and processor time. The change itself
    takes `price` seconds, and moves `bytes` of state to other channels. Its cause has `lasted` for so many
    epochs; where a forecast says for how many more it will last, they are `foreseen`.

    >>> Effect(seconds=0.5, cpu=-1.0).worth(cpu_price=0.1)
    0.4
    """

    seconds: float = 0.0
    cpu: float = 0.0
    bytes: float = 0.0
    price: float = 0.0
    lasted: int = 1
    foreseen: int = 0

    def worth(self, cpu_price: float) -> float:
        """The seconds that an epoch is better by, with processor time at its price."""
        return self.seconds + cpu_price * self.cpu

    def net(self, cpu_price: float, trust: float = 1.0) -> float:
        """What is gained after the price, if the cause lasts as long again as it has lasted, or as foreseen.

        Rent or buy: an imbalance is like rent, a change like a purchase. Who buys when the rent paid exceeds
        the price loses at most about twice the price, and never chases what ends sooner.

        >>> Effect(seconds=0.1, price=0.25, lasted=2).net(0.1) > 0
        False
        >>> Effect(seconds=0.1, price=0.25, lasted=3).net(0.1) > 0
        True
        """
        return trust * self.worth(cpu_price) * self.epochs - self.price

    @property
    def epochs(self) -> int:
        """For how many epochs the gain counts."""
        return self.foreseen or min(self.lasted, LONGEST)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


NO_EFFECT = Effect()


@dataclass(frozen=True)
class Proposal(Generic[Changed_co]):
    """Changes that are made together or not at all; `held` is a policy's own reason to wait with them.

    >>> Proposal((), reason="the channels are even: 1.03 times the mean").changes
    ()
    """

    changes: tuple[Changed_co, ...]
    effect: Effect = NO_EFFECT
    reason: str = ""
    held: str = ""
    urgent: bool = field(default=False)
    """Whether it is made whatever it saves: a bound of latency is at stake, or somebody else has decided."""
    measures: bool = field(default=False)
    """Whether it changes only what is measured: no limit counts it, and it has no outcome."""
