"""The five ways to weigh imbalance against migration; lower is better (003, section 4.3)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock.errors import BadRouting

__all__ = ["UTILITIES", "Utility", "utility"]

# Takes balance penalty and migration penalty, as floats or as arrays that broadcast.
Utility = Callable[[Any, Any], Any]

UTILITIES: Mapping[str, Utility] = {
    "A": lambda balance, migration: balance + 0 * migration,
    "APM": lambda balance, migration: balance + migration,
    "APLM": lambda balance, migration: balance + np.log1p(migration),
    "ATM": lambda balance, migration: balance * (1 + migration),
    "ATLM": lambda balance, migration: balance * (1 + np.log1p(migration)),
}


def utility(name: str) -> Utility:
    """The utility of this name.

    >>> utility("APM")(0.5, 0.25)
    0.75
    >>> utility("ATM")(0.5, 1.0)
    1.0
    """
    if name not in UTILITIES:
        raise BadRouting(f"no utility {name!r}; give one of {', '.join(UTILITIES)}")
    return UTILITIES[name]
