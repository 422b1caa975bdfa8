"""Tolls and warnings for cars that enter a segment.

The toll of a minute follows from the minutes before it. It is twice the square of the cars above 50 in the
last minute, if the mean speed of the last five minutes (LAV) is below 40 miles an hour and there is no
accident in the segment or the four ahead of it, and 0 otherwise. LAV is the mean over minutes of the mean
over cars of each car's mean speed, rounded down.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock as ps
from penstock_lab.linear_road.accidents import REACH
from penstock_lab.linear_road.traffic import EXIT_LANE

__all__ = ["FREE", "LIMIT", "PRICES", "SEGMENT_STATE", "SLACK", "SPAN", "Segments"]

FREE = 50
"""So many cars a minute pay nothing."""

LIMIT = 40
"""Miles an hour from which nobody pays."""

SPAN = 5
"""Minutes over which speeds are averaged."""

SLACK = 1e-9
"""Added before rounding down, so that the last bit of a mean does not decide."""

_CARS = tuple(f"cars_{back}" for back in range(SPAN + 1))
_SPEEDS = tuple(f"speed_{back}" for back in range(SPAN + 1))
_ACCIDENTS = tuple(f"accidents_{ahead}" for ahead in range(REACH))

SEGMENT_STATE = ", ".join(
    [
        "minute bigint",
        *(f"{name} int" for name in _CARS),
        *(f"{name} double" for name in _SPEEDS),
        *(f"{name} int" for name in _ACCIDENTS),
    ]
)
PRICES = "vid int, goes_on boolean, leaves boolean, lav int, toll int, accident int"

_MINUTE_US = 60_000_000
# More than any minute since 1970, so that a segment and a minute are one number in one order.
_AFTER_ALL_MINUTES = 2**36

Wholes = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Minutes:
    """Cars and sums of their mean speeds for segments and minutes, in the order of both."""

    cells: Wholes
    cars: Wholes
    speeds: Reals

    @classmethod
    def of(cls, cells: Wholes, cars: Wholes, speeds: Reals) -> "_Minutes":
        """Sums of what is given for equal cells."""
        found, place = np.unique(cells, return_inverse=True)
        # Sums of whole numbers and halves are exact.
        totals = (np.bincount(place, weights=each, minlength=len(found)) for each in (cars, speeds))
        counted, summed = totals
        return cls(found, counted.astype(np.int64), summed)

    def at(self, cells: Wholes) -> tuple[Wholes, Reals]:
        """Cars and sums of speeds of these cells, 0 where nothing was reported."""
        place = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        there = self.cells[place] == cells
        return np.where(there, self.cars[place], 0), np.where(there, self.speeds[place], 0.0)


class Segments(ps.Processor):
    """Statistics of each segment, and the toll of each car that enters it.

    Rows are reports, with what they change in the statistics, and notices of accidents ahead. A result has
    the toll (0 on the exit ramp, whose segment is free), LAV (null if nobody was there) and the segment of
    the nearest accident ahead (null if there is none).
    """

    def step(self, block: ps.Block) -> ps.Outcome:
        """Statistics of all minutes in the block and in the state, then tolls of the cars that cross."""
        rows = {name: block.rows[name].to_numpy() for name in block.rows.column_names if name != "time"}
        minute = block.times // _MINUTE_US
        minutes = self._minutes(block, rows, minute)
        ahead = self._ahead(block, rows)
        at = np.flatnonzero(rows["crosses"])
        results = self._prices(block, rows, at, minutes, ahead)
        last = minute[block.last]
        state = {"minute": pa.array(last)}
        cells = np.arange(len(last)) * _AFTER_ALL_MINUTES + last
        for back, (cars, speed) in enumerate(zip(_CARS, _SPEEDS, strict=True)):
            counted, summed = minutes.at(cells - back)
            state |= {cars: pa.array(counted, pa.int32()), speed: pa.array(summed)}
        for name, counts in zip(_ACCIDENTS, ahead, strict=True):
            state[name] = pa.array(counts[block.last], pa.int32())
        return ps.Outcome(results=results, at=at, state=pa.table(state))

    @staticmethod
    def _minutes(block: ps.Block, rows: dict[str, Any], minute: Wholes) -> _Minutes:
        cells = [block.groups * _AFTER_ALL_MINUTES + minute]
        cars, speeds = [rows["cars"]], [rows["speed"]]
        keys = np.flatnonzero(block.known)
        known = block.state.filter(pa.array(block.known))
        for back, (count, speed) in enumerate(zip(_CARS, _SPEEDS, strict=True)):
            cells.append(keys * _AFTER_ALL_MINUTES + known["minute"].to_numpy() - back)
            cars.append(known[count].to_numpy())
            speeds.append(known[speed].to_numpy())
        return _Minutes.of(np.concatenate(cells), np.concatenate(cars), np.concatenate(speeds))

    @staticmethod
    def _ahead(block: ps.Block, rows: dict[str, Any]) -> list[Wholes]:
        """For each distance the accidents that are there at each event."""
        found = []
        for ahead, name in enumerate(_ACCIDENTS):
            turned = np.where(rows["ahead"] == ahead, rows["turn"], 0).astype(np.int64)
            turned[block.first] += block.state[name].fill_null(0).to_numpy()
            total = np.cumsum(turned)
            before = (total - turned)[block.first]
            found.append(total - before[block.groups])
        return found

    @staticmethod
    def _prices(
        block: ps.Block, rows: dict[str, Any], at: Wholes, minutes: _Minutes, ahead: list[Wholes]
    ) -> pa.Table:
        cells = block.groups[at] * _AFTER_ALL_MINUTES + block.times[at] // _MINUTE_US
        means, count = np.zeros(len(at)), np.zeros(len(at), np.int64)
        last_cars = np.zeros(len(at), np.int64)
        for back in range(1, SPAN + 1):
            cars, speeds = minutes.at(cells - back)
            means += speeds / np.maximum(cars, 1)
            count += cars > 0
            last_cars = cars if back == 1 else last_cars
        lav = np.floor(means / np.maximum(count, 1) + SLACK).astype(np.int32)
        near = np.stack([each[at] > 0 for each in ahead])
        distance, warned = near.argmax(axis=0), near.any(axis=0)
        leaves = rows["lane"][at] == EXIT_LANE
        pays = (last_cars > FREE) & (lav < LIMIT) & ~warned & ~leaves
        seg, direction = (block.keys[name].to_numpy()[block.groups[at]] for name in ("seg", "dir"))
        accident = np.where(direction == 0, seg + distance, seg - distance)
        return pa.table(
            {
                "vid": rows["vid"][at],
                "goes_on": rows["goes_on"][at],
                "leaves": leaves,
                "lav": pa.array(lav, mask=count == 0),
                "toll": np.where(pays, 2 * (last_cars - FREE) ** 2, 0).astype(np.int32),
                "accident": pa.array(accident.astype(np.int32), mask=~warned),
            }
        )
