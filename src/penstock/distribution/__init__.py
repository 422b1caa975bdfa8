"""Where rows and state go: a file for each way in which the rows of a stage find its channels.

An operator names a `Distribution`, and `distribution.py` says what it is. Importing a file here registers it:
its layouts, its moves and its ways of forming partials are found by the names that plans and files hold.
"""

from penstock.distribution.anywhere import Anywhere
from penstock.distribution.broadcast import Broadcast, Everywhere
from penstock.distribution.by_key import ByKey
from penstock.distribution.by_window import ByWindow
from penstock.distribution.dealing import Panes, Runs
from penstock.distribution.distribution import Distribution, Forming, Layout
from penstock.distribution.on_grid import Duty, JudgedGrids, OnGrid, OnGrids
from penstock.distribution.sub_keys import SubKeyPlan
from penstock.distribution.two_choices import TwoChoices as TwoChoices


def by_key(columns: tuple[str, ...], *, mergeable: bool = False, slices: str = "") -> Distribution:
    """Rows by their key; without one, all are in the first channel, unless others form their partials."""
    if columns:
        return ByKey(columns, mergeable)
    return OnGrid("neither", mergeable, slices)


__all__ = [
    "Anywhere",
    "Broadcast",
    "ByKey",
    "ByWindow",
    "Distribution",
    "Duty",
    "Everywhere",
    "Forming",
    "JudgedGrids",
    "Layout",
    "OnGrid",
    "OnGrids",
    "Panes",
    "Runs",
    "SubKeyPlan",
    "by_key",
]
