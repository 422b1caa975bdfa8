"""The runs behind the gates: how far behind they are, and so how many rows gates should take.

A run that is behind by several times its bound does not catch up by getting more rows: those would only lie
in gates. Until it has nearly caught up, gates of its inlet take what it can take, each its share.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.control.expected import QueryLoad
from penstock.shown import shown_seconds

__all__ = ["Queries"]

KEPT_S: Final = 30.0
"""A run that has been silent for so long is not thought of any more."""
_BEHIND, _CAUGHT_UP = 4.0, 1.0
"""In bounds: where gates begin and cease to take less."""


@dataclass
class Queries:
    """What runs told last, by inlet and reader; time is an argument."""

    _told: dict[tuple[str, str], tuple[float, QueryLoad]] = field(default_factory=dict)
    _slow: set[tuple[str, str]] = field(default_factory=set)

    def tell(self, inlet: str, reader: str, load: QueryLoad, now: float) -> None:
        """A run says how it is."""
        self._told[inlet, reader] = now, load
        if load.behind > _BEHIND * load.bound:
            self._slow.add((inlet, reader))
        elif load.behind <= _CAUGHT_UP * load.bound:
            self._slow.discard((inlet, reader))

    def intake(self, rates: Mapping[str, Mapping[str, float]], now: float) -> dict[str, tuple[float, str]]:
        """How many rows a second gates should take and why, given the rates of inlets at each gate.

        A gate without a slow run is left out.
        """
        self._told = {each: told for each, told in self._told.items() if now - told[0] < KEPT_S}
        self._slow &= self._told.keys()
        limits: dict[str, tuple[float, str]] = {}
        for inlet, reader in self._slow:
            load = self._told[inlet, reader][1]
            if not limits.get(inlet) or 1 / load.row_seconds < limits[inlet][0]:
                words = (
                    f"a run over {inlet} takes {1 / load.row_seconds:,.0f} rows/s and is "
                    f"{shown_seconds(load.behind)} behind"
                )
                limits[inlet] = 1 / load.row_seconds, words
        totals = {inlet: sum(each.get(inlet, 0.0) for each in rates.values()) for inlet in limits}
        found = {}
        for gate, inlets in rates.items():
            slow = [each for each in limits if inlets.get(each)]
            if slow:
                rest = sum(rate for inlet, rate in inlets.items() if inlet not in limits)
                share = sum(limits[each][0] * inlets[each] / totals[each] for each in slow)
                # Streams of other inlets share the limit of their gate; there is room for them.
                found[gate] = share + 2 * rest, limits[slow[0]][1]
        return found
