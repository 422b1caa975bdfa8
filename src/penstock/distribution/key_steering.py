"""Makes the layouts of stages with a key: the first router, its successors, and the steps to them ([003] §4).

If more state has to move than an epoch may move, the layout gets an intermediate router, and later layouts
continue from it. Keys that lie on grids or are split into sub-keys have no place of their own, so none is
planned.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from penstock.distribution.distribution import (
    COUNTING,
    Files,
    Form,
    Forming,
    Held,
    Measured,
    Receipt,
    Sample,
    Settings,
    Steering,
    Told,
    dealt,
)
from penstock.distribution.frequent_keys import FrequentKeys, KeyCounts
from penstock.distribution.key_layout import KeyLayout
from penstock.distribution.sub_keys import SubKeyPlan
from penstock.errors import BadRescale, BadRouting
from penstock.routing import (
    Copied,
    Frequencies,
    Goal,
    HashPair,
    Spread,
    counter_threshold,
    first_router,
    is_exact,
    next_router,
    row_copies,
    step_toward,
)

__all__ = ["KeySteering", "TrackedKey"]

_NOW_AND_THEN = 16
"""So many epochs pass between two of which keys are counted while no policy asks for them."""
# A step moves at least one key or cell, however little may move.
_LEAST_SHARE = 1e-12
_MOST_SHOWN = 64  # tracked keys
_COPIES: Mapping[Copied, str] = {
    "both": "both sides",
    "left": "the left side only",
    "right": "the right side only",
    "judged": "both sides where one channel judges each row",
    "judged by pairs": "both sides where one channel judges each row",
    "neither": "no side",
}
_SHAPES: Mapping[Copied, str] = {
    "both": "give 1 column or more",
    "left": "give 1 column",
    "right": "give a column for each channel",
    "judged": "give 1 column or more, and fewer than channels",
    "judged by pairs": "give 1 column or more, and fewer than channels",
    "neither": "give a spread without grids",
}


@dataclass(frozen=True, repr=False)
class TrackedKey:
    """A frequent key: its hash, its share of all tuples, and its channel (None if it is on a grid)."""

    hash: int
    share: float
    channel: int | None

    def __repr__(self) -> str:
        place = "spread" if self.channel is None else f"channel {self.channel}"
        return f"key {self.hash & 0xFFFF_FFFF_FFFF_FFFF:016x}: {self.share:.1%} of tuples, {place}"


@dataclass
class KeySteering(Steering):
    """By the frequent keys of the last epochs.

    If it `splits`, rows of a hot key may be formed in several channels; `copied` are the sides of a join
    that may have copies of a row.
    """

    distribution: Any
    settings: Settings
    files: Files
    splits: bool = False
    copied: Copied = "neither"
    frequent: FrequentKeys = field(default_factory=FrequentKeys)
    asked_for: bool = True
    _since: int = 0

    def first(self, channels: int, sample: Sample) -> KeyLayout:
        """By the partitioning that the run was started with."""
        name = self.files.store(first_router(self.settings.partitioning, channels))
        return KeyLayout(
            channels=channels,
            router=name,
            target=name,
            placed_by=self.settings.partitioning,
            grids=self.grids(channels, sample),
            forming=self._forming(None, {}, channels, None),
        )

    def follow(self, before: KeyLayout, asked: Mapping[str, Any], held: Held, sample: Sample) -> KeyLayout:
        """The next step to the target, or to what is asked for.

        A request may bring its own router and any hot keys on grids. These lie on their new grids in one
        step; all other keys take as many steps as the bytes that may move ask for. Without a router and a
        partitioning, new grids on the same channels leave all other keys where they are.
        """
        after = self._stepped(before, asked.get("channels"), held)
        if COUNTING in asked:
            self.asked_for = asked[COUNTING].value
        if not held.tuples and after.grids is None:
            after = replace(after, grids=self.grids(after.channels, sample))
        return replace(after, forming=self._forming(before.forming, asked, after.channels, held))

    def _stepped(self, before: KeyLayout, wish: Any, held: Held) -> KeyLayout:
        placed = spread = before.spread
        current = self.files.find(before.router, HashPair)
        channels = before.channels if wish is None else wish.channels
        self.frequent.aim(counter_threshold(self._goal(held.form), channels))
        layout = before
        if wish is not None:
            current = placed.settled(current)
            spread = (placed if wish.spread is None else wish.spread).fitting(wish.channels)
            after = self._asked_for(before, wish, spread, current, held.form)
            placed_by = wish.partitioning or before.placed_by
            layout = replace(layout, placed_by=placed_by, target=self.files.store(after))
        if layout.target == before.router and spread == placed:
            return layout
        stepped = step_toward(
            current,
            self.files.find(layout.target, HashPair),
            self._whole(before, spread),
            growth=self.settings.resources[held.form].state,
            share=self._movable(placed, spread, held.bytes),
            domain=self._goal(held.form).domain,
        )
        grids = spread if spread != placed else before.grids
        return replace(layout, router=self.files.store(stepped), channels=stepped.channels, grids=grids)

    def _asked_for(
        self, before: KeyLayout, wish: Any, spread: Spread, current: HashPair, form: Form
    ) -> HashPair:
        """The router that a request leads to: its own, the one in force for new grids alone, or a new one."""
        now = self.files.find(before.target, HashPair)
        after: HashPair
        if wish.router is not None:
            after = wish.router
        elif wish.spread is not None and wish.partitioning is None and wish.channels == now.channels:
            after = before.spread.settled(now)
        else:
            known = self._whole(before, spread)
            partitioning = wish.partitioning or before.placed_by
            after = next_router(partitioning, current, known, wish.channels, self._goal(form))
        chosen: Spread | None = wish.spread
        return after if chosen is None else chosen.settled(after)

    def _movable(self, before: Spread, after: Spread, size: float) -> float:
        """The share of the state that an epoch may move beside the keys whose grids change."""
        share = min(1.0, self.settings.most_bytes / size) if size else 1.0
        changed = {key for key, _ in before.grids.items() ^ after.grids.items()}
        weight = self.frequent.known().of(np.array(sorted(changed), np.int64).view(np.uint64)).sum()
        return max(share - float(weight), _LEAST_SHARE)

    def _forming(
        self, before: Forming | None, asked: Mapping[str, Any], channels: int, held: Held | None
    ) -> Forming | None:
        """Keys that are split, as before or as requested; or all keys, if the user asked for that."""
        if not self.splits or channels == 1:
            return None
        if (given := dealt(self.settings.dealing, channels, held, keyed=True)) is not None:
            return given
        found: Forming | None = asked["sub-keys"].value if "sub-keys" in asked else before
        return found

    def grids(self, channels: int, sample: Sample) -> Spread | None:
        """The hot keys that lie on grids from the first tuples on; None if these are too few to tell."""
        del channels, sample
        return None

    def _whole(self, layout: KeyLayout, spread: Spread) -> Frequencies:
        """What is known of the keys that are in one channel each."""
        split = tuple(each.hash for each in layout.forming.keys) if _split(layout) else ()  # type: ignore[union-attr]
        return self.frequent.known().without(np.array((*spread.grids, *split), np.int64).view(np.uint64))

    def _goal(self, form: Form) -> Goal:
        return Goal(
            resources=self.settings.resources[form], sigma=self.settings.sigma, domain=self.frequent.domain
        )

    # What it learns and tells.

    def resume(self, layout: KeyLayout, remembered: KeyCounts) -> None:
        """Continue from the keys of a manifest."""
        del layout
        self.frequent.resume(remembered)

    def learn(self, layout: KeyLayout, receipts: Sequence[Receipt]) -> None:
        """Count the keys of an epoch, each row once however many copies it has."""
        counted = any(each.keys.total for each in receipts)
        self._since = 0 if counted else self._since + 1
        if not counted:
            return
        copies = {
            key: row_copies(self.copied, len(cells), columns)
            for key, (columns, cells) in layout.spread.grids.items()
        }
        self.frequent.update([each.keys.without_copies(copies) for each in receipts])

    def remembered(self) -> KeyCounts:
        """The most frequent keys."""
        return self.frequent.counts()

    def counts(self) -> bool:
        """Always, or while a policy asks for it and every so many epochs; nothing else depends on it."""
        if self._asks:
            return self.asked_for or self._since >= _NOW_AND_THEN - 1
        return self.settings.counted == "always"

    @property
    def _asks(self) -> bool:
        return self.settings.counted == "as asked"

    def thorough(self) -> bool:
        """While the number of keys grows."""
        return self.counts() and self.frequent.curious

    def target(self, layout: KeyLayout) -> int:
        """The channels of the target router."""
        return self.files.find(layout.target, HashPair).channels

    def moving(self, layout: KeyLayout) -> bool:
        """While the router is a step to another one."""
        return layout.router != layout.target

    def left(self, layout: KeyLayout) -> float:
        """The share of cells and table keys that are not yet where the target router has them."""
        if not self.moving(layout):
            return 0.0
        now, then = (self.files.find(name, HashPair) for name in (layout.router, layout.target))
        size = max(len(now.ring.cells), len(then.ring.cells))
        cells = [np.repeat(each.ring.cells, size // len(each.ring.cells)) for each in (now, then)]
        keys = np.union1d(now.keys, then.keys)
        differ = np.concatenate([cells[0] != cells[1], now.route(keys) != then.route(keys)])
        return float(differ.mean())

    def told(self, before: KeyLayout, after: KeyLayout) -> Iterator[Told]:
        """Other keys that are split."""
        if before.forming == after.forming or not (_split(before) or _split(after)):
            return
        why = "keys are whole again: no channel has much more than its share without it"
        if after.forming is not None:
            why = f"split: {after.forming.words(after.channels)}"
        yield Told("sub-keys", "sub-keys", why)

    def observed(self, measured: Measured) -> dict[str, Any]:
        """The router, the frequent keys, and what the operator allows."""
        layout: KeyLayout = measured.layout
        return {
            "partitioning": layout.placed_by,
            "router": layout.router,
            "known": self.frequent.observed(),
            "domain": self.frequent.domain,
            "spread": layout.grids,
            "sub_keys": layout.forming if _split(layout) else None,
            "counts": self.asked_for if self._asks else None,
            "splits": self.splits and dealt(self.settings.dealing, 2, None, keyed=True) is None,
            "copied": "neither" if self.settings.hosted else self.copied,
        }

    def tracked(self, layout: KeyLayout) -> tuple[TrackedKey, ...]:
        """The most frequent keys."""
        known = self.frequent.known()
        hashes = known.hashes[:_MOST_SHOWN]
        routes = layout.join_router(self.files).arrays.route(hashes)
        return tuple(
            TrackedKey(key, share, channel if channel >= 0 else None)
            for key, share, channel in zip(
                hashes.view(np.int64).tolist(), known.shares.tolist(), routes.tolist(), strict=False
            )
        )

    # What it allows.

    def choices(self) -> tuple[str, ...]:
        """Keys that are split, and whether keys are counted."""
        return (*(["sub-keys"] if self.splits else []), *([COUNTING] if self._asks else []))

    def check(self, change: Any) -> None:
        """Refuse sub-keys where rows have to be together, and grids on which a join would not be exact."""
        if change.setting in self.choices():
            return
        if change.setting != "channels":
            raise BadRescale(f"stage {change.stage} {self.refusal(change)}")
        if change.spread is not None and change.spread.keys:
            self._check_spread(change, change.spread)

    def _check_spread(self, wish: Any, spread: Spread) -> None:
        try:
            spread.router(first_router("uniform", wish.channels))
        except BadRouting as error:
            raise BadRescale(f"the spread of stage {wish.stage} is not one: {error}") from error
        if not spread.grids:
            return
        if self.settings.hosted:
            raise BadRescale(
                f"stage {self.settings.hosted[0]} runs in the channels of stage {wish.stage} and needs every "
                "key whole in one of them; give a spread without grids"
            )
        for key, (across, cells) in spread.grids.items():
            if not is_exact(self.copied, len(cells), across):
                raise BadRescale(
                    f"key {key} has a grid of {across} columns over {len(cells)} channels, but stage "
                    f"{wish.stage} may copy rows of {_COPIES[self.copied]}; {_SHAPES[self.copied]}"
                )


def _split(layout: KeyLayout) -> bool:
    return isinstance(layout.forming, SubKeyPlan)
