"""To which channels rows go: the rules of all exchanges on numpy, as a plan sets them for an epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.operators.exchange import Exchange
from penstock.routing import (
    Grid,
    HashPair,
    JoinSpread,
    PlainPanes,
    Spread,
    SubKeys,
    WindowChannels,
    place_by_cost,
    shaped_grid,
)
from penstock.routing.arrays import RouteArrays
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.records import StagePlan
from penstock.runtime.routers import Routers
from penstock.sketches import MeanCost
from penstock.sketches.splitmix import splitmix64

__all__ = ["Placed", "Placer", "by_channel", "first_hop", "placer"]

Placed = tuple[NDArray[np.int64] | None, NDArray[np.int32]]
"""Rows and the channel of each; None for all rows in their order."""


class Placer(Protocol):
    """Says where the rows of a port go; any attempt of a task says the same of the same rows."""

    @property
    def channels(self) -> int:
        """The number of channels."""

    def place(self, rows: Any) -> Placed:
        """The channels of some rows."""


def by_channel(table: Any, placer: Placer) -> Iterator[tuple[int, Any]]:
    """The rows for each channel that gets any, in their order."""
    if placer.channels == 1:
        yield 0, table
        return
    rows, channels = placer.place(table)
    if not len(channels):
        return
    # 16-bit numbers are sorted by radix: linear, and several times faster than by comparison.
    order = np.argsort(channels.astype(np.int16 if placer.channels < 1 << 15 else np.int32), kind="stable")
    sizes = np.bincount(channels, minlength=placer.channels)
    found = table.take(pa.array(order if rows is None else rows[order]))
    start = 0
    for channel in np.flatnonzero(sizes).tolist():
        yield channel, found.slice(start, int(sizes[channel]))
        start += int(sizes[channel])


@dataclass(frozen=True)
class One:
    """All rows go to the only channel."""

    channels: int = 1

    def place(self, rows: Any) -> Placed:
        """The first channel."""
        return None, np.zeros(rows.num_rows, np.int32)


@dataclass(frozen=True)
class ByKey:
    """Rows go to the channel of their key."""

    keys: tuple[str, ...]
    routes: RouteArrays
    channels: int

    def place(self, rows: Any) -> Placed:
        """By the hash of the key."""
        return None, self.routes.route(spark_hash([rows[name] for name in self.keys], rows.num_rows))


@dataclass(frozen=True)
class OnGrids:
    """Rows of a port of an equi-join: whole keys go to their channel, hot ones to the cells of their grid.

    A row without a key matches nothing, so it may go anywhere; all in one place would be a hot key.
    """

    exchange: Exchange
    port: int
    spread: JoinSpread

    @property
    def channels(self) -> int:
        """Those of the spread."""
        return self.spread.channels

    def place(self, rows: Any) -> Placed:
        """Copies of rows on grids, others once."""
        keys = [rows[name] for name in self.exchange.keys]
        hashes = spark_hash(keys, rows.num_rows)
        salts = _salts(rows, self.exchange) if len(self.spread.counts) else hashes
        copies = (self.spread.left, self.spread.right)[self.port](hashes, salts)
        if not any(each.null_count for each in keys):
            return copies.rows, copies.channels
        known = np.logical_and.reduce([np.asarray(each.is_valid()) for each in keys])
        lone = np.flatnonzero(~known)
        anywhere = (_salts(rows.take(pa.array(lone)), self.exchange) % np.uint64(self.channels)).astype(
            np.int32
        )
        chosen = known[copies.rows]
        return (
            np.concatenate([copies.rows[chosen], lone]),
            np.concatenate([copies.channels[chosen], anywhere]),
        )


@dataclass(frozen=True)
class OnGrid:
    """Rows of a port of a product, on a grid of all channels."""

    exchange: Exchange
    port: int
    grid: Grid

    @property
    def channels(self) -> int:
        """Those of the grid."""
        return self.grid.channels

    def place(self, rows: Any) -> Placed:
        """A copy for each channel of a column, or of a row."""
        copies = (self.grid.left, self.grid.right)[self.port](_salts(rows, self.exchange))
        return copies.rows, copies.channels


@dataclass(frozen=True)
class Everywhere:
    """Every channel gets every row."""

    channels: int

    def place(self, rows: Any) -> Placed:
        """A copy for each channel."""
        every = np.arange(rows.num_rows)
        return np.repeat(every, self.channels), np.tile(np.arange(self.channels, dtype=np.int32), len(every))


@dataclass(frozen=True)
class ByWindow:
    """Rows go to every channel that computes one of their windows."""

    exchange: Exchange
    windows: WindowChannels

    @property
    def channels(self) -> int:
        """Those that compute windows."""
        return self.windows.channels

    def place(self, rows: Any) -> Placed:
        """A copy for each such channel."""
        return self.windows.deliveries(self.exchange.times(rows))


@dataclass
class InTurn:
    """Rows go to channels in turn, in runs; tasks begin with different channels."""

    channels: int
    task: int
    run: int = 1
    _passed: int = 0

    def place(self, rows: Any) -> Placed:
        """By the number of a row in its task."""
        numbers = np.arange(self._passed, self._passed + rows.num_rows)
        self._passed += rows.num_rows
        return None, ((numbers // self.run + self.task) % self.channels).astype(np.int32)


@dataclass(frozen=True)
class ByCost:
    """Rows that cost differently go where the channels should take equally long ([001] §5)."""

    exchange: Exchange
    costs: MeanCost
    channels: int
    task: int

    def place(self, rows: Any) -> Placed:
        """By the cost of the value of each row; among rows of equal cost their content decides."""
        hashes = rows[self.exchange.value].to_numpy().view(np.uint64)
        return None, place_by_cost(hashes, _salts(rows, self.exchange), self.costs, self.channels, self.task)


@dataclass
class BySubKey:
    """Rows of hot keys go to their sub-keys in turn ([000] §4.1).

    The turn comes from a hash of a row's number in its task, since the number may follow a pattern of keys.
    """

    keys: tuple[str, ...]
    router: SubKeys
    task: int
    _passed: int = 0

    @property
    def channels(self) -> int:
        """Those of the ring."""
        return self.router.channels

    def place(self, rows: Any) -> Placed:
        """By the hash of the key, and the turn."""
        hashes = spark_hash([rows[name] for name in self.keys], rows.num_rows)
        numbers = np.arange(self._passed, self._passed + rows.num_rows, dtype=np.uint64)
        self._passed += rows.num_rows
        turns = (splitmix64(numbers, seed=self.task) >> np.uint64(1)).astype(np.int64)
        return None, self.router.route(hashes, turns)


@dataclass(frozen=True)
class ByPane:
    """Rows go by whole panes in turn ([000] §4.2)."""

    bucket: str
    channels: int

    def place(self, rows: Any) -> Placed:
        """By the number of the pane."""
        return None, PlainPanes(self.channels).route(rows[self.bucket].to_numpy()).astype(np.int32)


def _salts(rows: Any, exchange: Exchange) -> NDArray[np.uint64]:
    """A number for each row that follows from its content alone."""
    return spark_hash([rows[each.name] for each in exchange.columns], rows.num_rows)


def placer(  # noqa: PLR0911, PLR0913, PLR0917 -- a rule, and all that may decide on it
    exchange: Exchange, plan: StagePlan, spread: Spread | None, routers: Routers, port: int, task: int
) -> Placer:
    """How the rows of a port find the channels that keep them, or that compute with them."""
    if plan.channels == 1:
        return One()
    if exchange.windows is not None and plan.batches is not None:
        return ByWindow(exchange, WindowChannels(exchange.windows.shape, plan.batches, plan.channels))
    if exchange.everywhere:
        return Everywhere(plan.channels)
    if exchange.groupings:
        if plan.grouping == "by cost":
            return ByCost(exchange, routers.find_costs(plan.costs).means, plan.channels, task)
        return InTurn(plan.channels, task)
    if not exchange.keys:
        return OnGrid(exchange, port, shaped_grid(exchange.copied, plan.channels))
    router: HashPair = routers.find(plan.router)
    if exchange.nulls == "equal":
        return ByKey(exchange.keys, router.arrays, plan.channels)
    return OnGrids(exchange, port, (spread or Spread()).router(router))


def first_hop(exchange: Exchange, plan: StagePlan, task: int) -> Placer:
    """How raw rows find the channels that form partials of them for others."""
    if plan.sub_keys is not None:
        return BySubKey(exchange.keys, plan.sub_keys.router(plan.channels), task)
    if plan.run:
        return InTurn(plan.channels, task, plan.run)
    assert exchange.bucket is not None
    return ByPane(exchange.bucket.name, plan.channels)
