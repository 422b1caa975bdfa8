"""Tells sources how the run is after each epoch, and hears from them what rates to expect."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.connect import Reader
from penstock.control.bound import DEFAULT_BOUND
from penstock.control.expected import Expected, QueryLoad

__all__ = ["Outlook"]

_WEIGHT = 0.3
"""The weight of the newest epoch in what a row takes."""


@dataclass
class Outlook:
    """What a row takes, and how many rows come while an epoch runs; instants in seconds since 1970.

    A row that comes while an epoch runs waits for the next one. So a run is behind by what those rows take,
    and those that the last epoch left.
    """

    readers: Mapping[str, Reader]
    bound: float | None = None
    _row_seconds: float = field(default=0.0, init=False)
    _arrived: float | None = field(default=None, init=False)

    def after(
        self, rows: Mapping[str, int], left: Mapping[str, int], arrived: float, committed: float
    ) -> dict[str, Expected]:
        """What sources expect, after an epoch with so many rows of each that began when they had arrived."""
        total, before = sum(rows.values()), self._arrived
        self._arrived = arrived
        if total:
            took = (committed - arrived) / total
            weight = _WEIGHT if self._row_seconds else 1.0
            self._row_seconds += weight * (took - self._row_seconds)
        if not self._row_seconds or before is None or arrived <= before:
            return {}
        came = (committed - arrived) / (arrived - before)
        bound = DEFAULT_BOUND if self.bound is None else self.bound
        found = {}
        for name, reader in self.readers.items():
            lag = left.get(name, 0) + int(rows.get(name, 0) * came)
            heard = reader.outlook(QueryLoad(lag, self._row_seconds, bound))
            if heard is not None:
                found[name] = heard
        return found
