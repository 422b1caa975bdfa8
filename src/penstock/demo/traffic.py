"""The traffic query: what every 500 m tile of the city saw in the last hour, minute by minute.

It has an aggregate of its own: `QueueEnd` detects the end of a queue, where free flow turns into standing
cars.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from penstock.demo.city import DELAY_SECONDS, METRES_PER_DEGREE

__all__ = ["SCHEMA", "TILE", "QueueEnd", "tile_middle", "traffic"]

SCHEMA = "time timestamp, vehicle string, lon double, lat double, speed double, kind string"
# The edge of a tile in metres.
TILE = 500
# Speeds in km/h from which traffic flows freely and up to which a car stands; the least reports of a queue.
FREE = 50.0
STANDING = 15.0
MINIMUM = 5


def traffic(feed: Path) -> ps.Relation:
    """The query over a folder that fills with the city's Parquet files."""
    reports = ps.stream(
        "reports",
        schema=SCHEMA,
        time="time",
        delay=f"{DELAY_SECONDS:.0f} seconds",
        source=ps.files(feed, live=True),
    )
    return (
        reports.where("kind = 'traffic'")
        .select(area=f"grid(lon, lat, {TILE})", speed="speed")
        .group_by("area")
        .window("60 minutes", slide="1 minute")
        .agg(reports=ps.count(), mean=ps.avg("speed"), top=ps.max("speed"), jam=QueueEnd("speed"))
    )


class QueueEnd(ps.ArrowAggregate):
    """Whether an area holds the end of a queue when the window ends.

    It does if traffic flowed freely once (50 km/h or more) and, of the reports since the last such report, at
    least five and at least half come from standing cars (15 km/h or less). Rows without a speed are ignored.
    The state describes what follows the last free-flowing report, so an earlier state counts only if the
    later one has seen no free flow: this makes the merge associative.
    """

    state: ClassVar[Mapping[str, str]] = {"freed": "boolean", "reports": "bigint", "standing": "bigint"}
    result: ClassVar[str] = "boolean"

    def accumulate(self, groups: npt.NDArray[np.integer], n: int, *columns: pa.Array) -> pa.RecordBatch:
        """One state per group; linear in the rows."""
        speed = pc.cast(columns[0], pa.float64()).to_numpy(zero_copy_only=False)
        free = speed >= FREE
        row = np.arange(len(speed))
        last_free = np.full(n, -1)
        np.maximum.at(last_free, groups[free], row[free])
        since = (row > last_free[groups]) & ~np.isnan(speed)
        return _states(
            last_free >= 0,
            np.bincount(groups[since], minlength=n),
            np.bincount(groups[since & (speed <= STANDING)], minlength=n),
        )

    def merge(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """The right state where it has seen free flow, else the sum of both."""
        freed = right["freed"].to_numpy(zero_copy_only=False)
        earlier = ~freed
        return _states(
            freed | left["freed"].to_numpy(zero_copy_only=False),
            right["reports"].to_numpy() + earlier * left["reports"].to_numpy(),
            right["standing"].to_numpy() + earlier * left["standing"].to_numpy(),
        )

    def finish(self, state: pa.RecordBatch) -> pa.Array:
        """True where a queue of enough standing cars followed free flow."""
        standing = state["standing"].to_numpy()
        queue = (standing >= MINIMUM) & (2 * standing >= state["reports"].to_numpy())
        return pa.array(queue & state["freed"].to_numpy(zero_copy_only=False))


def _states(
    freed: npt.NDArray[np.bool_], reports: npt.NDArray[np.int64], standing: npt.NDArray[np.int64]
) -> pa.RecordBatch:
    columns = [pa.array(freed), pa.array(reports, pa.int64()), pa.array(standing, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=["freed", "reports", "standing"])


def tile_middle(area: str, metres: float = TILE) -> tuple[float, float]:
    """Longitude and latitude of the middle of the tile "row:column", the inverse of the macro `grid`.

    >>> lon, lat = tile_middle("12045:1068", 500)
    >>> f"{lon:.4f} {lat:.4f}"
    '8.1848 54.1030'
    """
    row, column = (int(part) for part in area.split(":"))
    lat = row * metres / METRES_PER_DEGREE
    lon = (column + 0.5) * metres / (METRES_PER_DEGREE * math.cos(math.radians(lat)))
    return lon, lat + 0.5 * metres / METRES_PER_DEGREE
