"""Keys of a full outer join on judged grids: a channel judges some rows, and may deliver pairs or not.

A row has one copy in a cell that judges it, which sees all its possible partners; its other copies are there
for partners to find. So a channel delivers a row alone only where it judges it, and pairs only in cells of
the kind that delivers those of the key (see `routing/join_grid.py`). The other cells need no pairs: they find
out which of the rows that they judge have a partner, and look no further for a row that has one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.distribution import Duty
from penstock.operators.joins.candidates import Candidates
from penstock.operators.joins.spans import Marks, Mask, Rows, Spans
from penstock.operators.joins.spec import Pair
from penstock.routing.spark_hash import spark_hash
from penstock.state.chosen_rows import ChosenRows

__all__ = ["Duties", "Matching"]

Matching = Callable[[Candidates], Iterator[tuple[Rows, Rows]]]
"""Blocks of (left rows, right rows) that match, among candidates."""

# A row that can match mostly does so among a few candidates; only one that does not is compared with all.
_WIDTHS = (16, 1024, 1 << 62)


@dataclass(frozen=True, eq=False)
class Duties:
    """What a channel does for each key on a judged grid that has a cell there, by the signed hash of the key.

    `keys` are the columns that the router hashes, `sides` the kept and the new rows of each side. Rows of
    all other keys are judged here, and their pairs are delivered. Only the keys of rows that somebody asks
    for are hashed: new ones, and those that leave without a match.
    """

    of_keys: Mapping[int, Duty]
    keys: tuple[str, ...]
    sides: Pair[ChosenRows]

    def judged(self, port: int, rows: Rows) -> Mask:
        """Which rows of a side are judged here."""
        return ~self._among(port, rows, [key for key, duty in self.of_keys.items() if duty.port != port])

    def silent(self, port: int, rows: Rows) -> Mask:
        """Which rows of a side have their pairs delivered elsewhere."""
        return self._among(port, rows, [key for key, duty in self.of_keys.items() if not duty.delivers])

    def delivering(self, candidates: Candidates) -> Candidates:
        """The candidates whose pairs are delivered."""
        left, right = candidates.left_probes, candidates.right_probes
        return Candidates(
            _chosen(left, left is None or ~self.silent(0, left.probe)),
            _chosen(right, right is None or ~self.silent(1, right.probe)),
            candidates.stay,
        )

    def look(self, candidates: Candidates, matched: Pair[Marks], matching: Matching | None) -> None:
        """Mark the rows judged here that have a partner among the other candidates.

        All candidates match without a condition; `matching` says which of them do. Costs O(rows) without one;
        at worst each pair is looked at.
        """
        left, right = candidates.left_probes, candidates.right_probes
        left = _chosen(left, left is None or self.silent(0, left.probe))
        right = _chosen(right, right is None or self.silent(1, right.probe))
        if matching is None:
            _mark(left, matched.left, matched.right)
            _mark(right, matched.right, matched.left)
            return
        # Of a key whose pairs are delivered elsewhere, one side is judged: that which probes, or the other.
        own = left is None or self.judged(0, left.probe), right is None or self.judged(1, right.probe)
        _look(_chosen(left, own[0]), _chosen(right, ~np.asarray(own[1])), matched, matching, port=0)
        _look(_chosen(left, ~np.asarray(own[0])), _chosen(right, own[1]), matched, matching, port=1)

    def _among(self, port: int, rows: Rows, keys: list[int]) -> Mask:
        if not keys or not len(rows):
            return np.zeros(len(rows), np.bool_)
        columns = (self.sides.left, self.sides.right)[port].taken(self.keys, rows)
        known = [np.asarray(each.is_valid()) for each in columns if each.null_count]
        found = np.isin(spark_hash(columns, len(rows)), np.array(keys, np.int64).view(np.uint64))
        return np.asarray(np.logical_and.reduce([found, *known]), np.bool_)


def _look(
    left: Spans | None, right: Spans | None, matched: Pair[Marks], matching: Matching, *, port: int
) -> None:
    """Mark rows of the judged port that have a partner among the candidates of probing left and right rows.

    A row that has one needs no other, so each is compared with few candidates first.
    """
    judged = (matched.left, matched.right)[port]
    nothing = Pair(np.zeros(0, np.bool_), np.zeros(0, np.bool_))
    for width in _WIDTHS:
        left = _undecided(left, judged, probing=port == 0)
        right = _undecided(right, judged, probing=port == 1)
        if left is None and right is None:
            return
        for pair in matching(Candidates(_first(left, width), _first(right, width), nothing)):
            judged[pair[port]] = True
        left, right = _rest(left, width), _rest(right, width)


def _chosen(spans: Spans | None, mask: Any) -> Spans | None:
    """The spans of some probing rows; None if there are none."""
    if spans is None:
        return None
    at = np.flatnonzero(mask)
    return Spans(spans.probe[at], spans.order, spans.low[at], spans.high[at]) if len(at) else None


def _mark(spans: Spans | None, probing: Marks, built: Marks) -> None:
    """Mark all probing rows, and all rows that any of them spans."""
    if spans is None:
        return
    probing[spans.probe] = True
    size = len(spans.order) + 1
    begun, ended = np.bincount(spans.low, minlength=size), np.bincount(spans.high, minlength=size)
    built[spans.order[np.cumsum(begun - ended)[:-1] > 0]] = True


def _undecided(spans: Spans | None, matched: Marks, *, probing: bool) -> Spans | None:
    """The spans without rows that have matched: of those that probe, or of those that are spanned."""
    if spans is None:
        return None
    if probing:
        return _chosen(spans, (spans.high > spans.low) & ~matched[spans.probe])
    kept = ~matched[spans.order]
    before = np.concatenate([[0], np.cumsum(kept)])
    low, high = before[spans.low], before[spans.high]
    return _chosen(Spans(spans.probe, spans.order[kept], low, high), high > low)


def _first(spans: Spans | None, width: int) -> Spans | None:
    """At most so many candidates of each probing row."""
    return None if spans is None else spans.spanning(spans.low, np.minimum(spans.high, spans.low + width))


def _rest(spans: Spans | None, width: int) -> Spans | None:
    """The candidates after those."""
    return None if spans is None else spans.spanning(np.minimum(spans.high, spans.low + width), spans.high)
