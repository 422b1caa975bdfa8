"""What the rows of a stage cost by their value, learnt from the channels over the last epochs.

One sketch for all channels: it knows more than each of them, and it stays right when their number changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.distribution.distribution import Files
from penstock.sketches import ValueCosts

__all__ = ["LearntCosts"]

_KEPT = 0.9
"""The part of what was known that still counts after an epoch that measured: half is of the last seven."""
_DRIFT = 0.05
"""If rows cost something else than plans go by, by more than this part, plans get a new sketch."""
_LEARNT: Final = 4
"""After so many plans that went by one sketch, costs are known."""
_SELDOM: Final = 8
"""Then samples are taken in one of so many epochs: they cost time, which every channel loses."""


@dataclass
class LearntCosts:
    """The costs of one stage; `name` is the stored sketch that plans go by."""

    name: str = ""
    _known: ValueCosts | None = field(default=None, repr=False)
    _kept: int = 0
    """Plans in a row that went by the sketch."""

    def resume(self, name: str, files: Files) -> None:
        """Continue from the sketch of the last plan."""
        if name:
            self.name, self._known = name, ValueCosts.from_bytes(files.find(name, ValueCosts).to_bytes())

    def update(self, reports: Sequence[ValueCosts]) -> None:
        """Take in what the channels have measured in an epoch."""
        if not reports:
            return
        if self._known is None:
            self._known = ValueCosts()
        self._known.fade(_KEPT)
        for each in reports:
            self._known.merge(each)

    def stored(self, files: Files) -> str:
        """The name of the sketch that the next plan goes by; empty while nothing is known."""
        if self._known is not None and (
            not self.name or self._known.drift(files.find(self.name, ValueCosts)) > _DRIFT
        ):
            self.name, self._kept = files.store(ValueCosts.from_bytes(self._known.to_bytes())), 0
        self._kept += bool(self.name)
        return self.name

    def sampled(self, epoch: int) -> bool:
        """Whether channels take samples in an epoch; what they make of rows is the same."""
        return self._kept <= _LEARNT or epoch % _SELDOM == 0

    @property
    def known(self) -> ValueCosts | None:
        """All that is known, None before the first measure."""
        return self._known
