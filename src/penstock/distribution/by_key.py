"""Rows go to the channel of their key: a ring for most keys, a table for frequent ones ([003] §4.1)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.distribution.distribution import Distribution, Files, Layout, Placed, Settings
from penstock.distribution.key_layout import KeyLayout, ring_flows
from penstock.distribution.key_steering import KeySteering
from penstock.routing import HashPair
from penstock.routing.arrays import RouteArrays
from penstock.routing.spark_hash import spark_hash
from penstock.state.placing import Flow, Mask, Placing, Read, Targets

__all__ = ["ByKey", "KeyPlacer", "KeyPlacing"]

_CHANNEL = np.int64((1 << 32) - 1)  # the part of an entry of a ring that is the channel


@dataclass(frozen=True)
class ByKey(Distribution):
    """Every key has one channel; null is a key like any other.

    Where rows are combined into `mergeable` partials, those of a hot key may be formed in several channels.
    """

    columns: tuple[str, ...]
    mergeable: bool = False

    def keys(self, port: int) -> tuple[str, ...]:
        """The columns that the router hashes."""
        del port
        return self.columns

    def home(self, layout: KeyLayout, files: Files, port: int, task: int) -> "KeyPlacer":
        """By the router."""
        del port, task
        return KeyPlacer(self.columns, files.find(layout.router, HashPair).arrays, layout.channels)

    def moves(self, before: Layout, after: Layout) -> bool:
        """If the router is another one."""
        assert isinstance(before, KeyLayout)
        assert isinstance(after, KeyLayout)
        return before.places != after.places

    def move(self, before: KeyLayout, after: KeyLayout, files: Files) -> "KeyPlacing":
        """Rows go with their keys."""
        return KeyPlacing(*(files.find(each.router, HashPair).arrays for each in (before, after)))

    def steering(self, settings: Settings, files: Files) -> KeySteering:
        """By frequent keys."""
        return KeySteering(self, settings, files, splits=self.mergeable)


@dataclass(frozen=True)
class KeyPlacer:
    """The channels of keys."""

    keys: tuple[str, ...]
    routes: RouteArrays
    channels: int

    def place(self, rows: Any) -> Placed:
        """By the hash of the key."""
        return None, self.routes.route(spark_hash([rows[name] for name in self.keys], rows.num_rows))


@dataclass(frozen=True, eq=False)
class KeyPlacing(Placing):
    """State of whole keys."""

    before: RouteArrays
    after: RouteArrays

    kind: ClassVar[str] = "key"
    coarse: ClassVar[bool] = True

    def flow(self, source: int, port: int, bounds: tuple[int, int]) -> Flow:
        """By the cells of the ring and the keys of the tables that the channel has."""
        del port, bounds
        old, new = self._homes
        own = np.unique(new[old == source]).tolist()
        found = {**dict.fromkeys(own, 0.0), **self._ring.get(source, {})}
        return {source: None} if found.keys() <= {source} and source < self.after.channels else found

    def takes(self, read: Read, source: int, target: int) -> Mask:
        """Every row goes to the channel of its key."""
        del source
        return np.asarray(read.routes(self.after) == target)

    def packed(self) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """The router after the move; that before it only says who has to read, which is known by then."""
        return {"channels": self.after.channels, "fold": self.after.fold}, [self.after.table, self.after.ring]

    @classmethod
    def unpacked(cls, values: Any, arrays: Any) -> "KeyPlacing":
        """A placing that tells whose rows are whose."""
        table, ring = arrays
        after = RouteArrays(values["channels"], table, ring, values["fold"])
        return cls(after, after)

    @cached_property
    def _ring(self) -> dict[int, dict[int, float]]:
        return ring_flows(*((each.ring & _CHANNEL) for each in (self.before, self.after)))

    @cached_property
    def _homes(self) -> tuple[Targets, Targets]:
        """The channels of all keys that stand in one of the tables, before and after."""
        tables = [each.table[: each.slots].view(np.uint64) for each in (self.before, self.after)]
        keys = np.unique(np.concatenate(tables))
        return self.before.route(keys), self.after.route(keys)
