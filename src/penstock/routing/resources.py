"""How state, computation and communication grow with a key's frequency ([003] §3.1 and §4.4)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from penstock.errors import BadRouting
from penstock.routing.router import Costs

__all__ = ["CCC", "CCL", "LCL", "LLL", "LQL", "Growth", "Resources"]


class Growth(IntEnum):
    """A resource function: the power of a key's frequency that the key costs.

    >>> import numpy as np
    >>> Growth.QUADRATIC.costs(np.array([0.5, 0.25])).tolist()
    [0.25, 0.0625]
    """

    CONSTANT = 0
    LINEAR = 1
    QUADRATIC = 2

    def costs(self, frequencies: Costs) -> Costs:
        """What keys of these frequencies cost: 1, the frequency, or its square."""
        return frequencies**self.value


_LETTERS = {"C": Growth.CONSTANT, "L": Growth.LINEAR, "Q": Growth.QUADRATIC}


@dataclass(frozen=True)
class Resources:
    """The resource functions of one stage, with the imbalance (max over min) that each may have.

    The load of a channel is the sum of its keys' costs, for computation too. The paper's Eq. 3 has a further
    factor of the frequency, but its own worked example and figures (an LLL imbalance below 2) do without.

    >>> Resources.of("LQL").computation
    <Growth.QUADRATIC: 2>
    """

    state: Growth
    computation: Growth
    communication: Growth = Growth.LINEAR
    tolerances: tuple[float, float, float] = (1.2, 1.2, 1.2)

    def __post_init__(self) -> None:
        if any(tolerance <= 1 for tolerance in self.tolerances):
            raise BadRouting(
                f"tolerances are {self.tolerances}; each is a ratio of most to least load: give more than 1"
            )

    @classmethod
    def of(cls, letters: str, tolerance: float = 1.2) -> Self:
        """The functions of state, computation and communication from letters such as "LCL"."""
        if len(letters) != 3 or not set(letters) <= set(_LETTERS):
            raise BadRouting(f"resources are {letters!r}; give three letters of C, L and Q, such as LCL")
        state, computation, communication = (_LETTERS[letter] for letter in letters)
        return cls(state, computation, communication, (tolerance, tolerance, tolerance))

    @property
    def growths(self) -> tuple[Growth, Growth, Growth]:
        """State, computation and communication, in this order."""
        return self.state, self.computation, self.communication


CCL = Resources.of("CCL")
LCL = Resources.of("LCL")
LLL = Resources.of("LLL")
LQL = Resources.of("LQL")
CCC = Resources.of("CCC")
