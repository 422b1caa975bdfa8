"""What a car's report says beside its position: whether it is in a new segment, and whether the car stands.

A report also tells what it changes in the statistics of its segment. The mean speed of a car in a segment and
a minute is the mean of its reports there, so the first report adds a car and its speed, and a second one adds
the change of the mean. Sums of these changes are the number of cars and the sum of their mean speeds: nobody
has to remember single cars. A car reports at most twice a minute, so means are whole or half miles, and sums
are exact in any order.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock as ps
from penstock_lab.linear_road.traffic import EXIT_LANE, INTERVAL_S

__all__ = ["MOVES", "STANDING", "VEHICLE_STATE", "Vehicles"]

STANDING = 4
"""So many reports in a row from one place mean that a car stands."""

VEHICLE_STATE = (
    "at bigint, xway int, dir int, seg int, lane int, pos int, stands int, reports int, speeds bigint"
)
MOVES = (
    "xway int, dir int, seg int, lane int, pos int, turn int, crosses boolean, goes_on boolean, cars int, "
    "speed double"
)

_SECOND_US = 1_000_000
_MINUTE_US = 60 * _SECOND_US
_PLACE = ("xway", "dir", "seg", "lane", "pos")

Wholes = NDArray[np.int64]


class Vehicles(ps.Processor):
    """Adds to each report of a car what follows from the one before it.

    - `crosses`: the report before it, 30 seconds ago, was not in this segment; `goes_on`: there was one.
    - `turn` is 1 where a car has come to stand: its fourth report in a row from one place. When it reports
      from elsewhere, a row with turn -1 and the place where it stood comes in addition.
    - `cars` and `speed`: what the report changes in the statistics of its segment and minute.

    A car that has reported from an exit ramp is forgotten.
    """

    def step(self, block: ps.Block) -> ps.Outcome:
        """Each report against the one before it, which for a car's first one is in the state."""
        now = {name: block.rows[name].to_numpy() for name in (*_PLACE, "speed")}
        now["at"] = block.times
        before = {name: _shifted(now[name], block, name) for name in ("at", *_PLACE)}
        known = np.ones(len(block.times), np.bool_)
        known[block.first] = block.known
        known &= before["lane"] != EXIT_LANE

        same_segment = known & _equal(now, before, ("xway", "dir", "seg"))
        goes_on = known & (block.times - before["at"] <= INTERVAL_S * _SECOND_US)
        same_place = goes_on & _equal(now, before, _PLACE)
        stands = _numbers(same_place, block, _given(block, "stands"))
        stood = _shifted(stands, block, "stands")
        same_minute = same_segment & (block.times // _MINUTE_US == before["at"] // _MINUTE_US)
        reports = _numbers(same_minute, block, _given(block, "reports"))
        speeds = _sums(now["speed"], same_minute, block, _given(block, "speeds"))
        mean = speeds / reports
        mean_before = np.where(same_minute, (speeds - now["speed"]) / np.maximum(reports - 1, 1), 0.0)

        results = pa.table(
            {
                **{name: now[name] for name in _PLACE},
                "turn": (stands == STANDING).astype(np.int32),
                "crosses": ~(goes_on & same_segment),
                "goes_on": goes_on,
                "cars": (~same_minute).astype(np.int32),
                "speed": mean - mean_before,
            }
        )
        gone = np.flatnonzero(known & ~same_place & (stood >= STANDING))
        state = {**now, "stands": stands, "reports": reports, "speeds": speeds}
        names = ("at", *_PLACE, "stands", "reports", "speeds")
        return ps.Outcome(
            results=pa.concat_tables([results, _starts({name: before[name][gone] for name in _PLACE})]),
            at=np.concatenate([np.arange(len(block.times)), gone]),
            state=pa.table({name: state[name][block.last] for name in names}),
            keep=now["lane"][block.last] != EXIT_LANE,
        )


def _starts(place: dict[str, Any]) -> pa.Table:
    """Rows that say that cars no longer stand where they stood; they change no statistics."""
    count = len(place["pos"])
    never, zero = np.zeros(count, np.bool_), np.zeros(count, np.int32)
    turned = {"turn": zero - 1, "crosses": never, "goes_on": never, "cars": zero, "speed": np.zeros(count)}
    return pa.table({**place, **turned})


def _given(block: ps.Block, name: str) -> Any:
    """A column of the state, 0 where a car is not known."""
    return block.state[name].fill_null(0).to_numpy()


def _shifted(values: Any, block: ps.Block, name: str) -> Any:
    """The value of the event before; for the first event of a key that of the state."""
    found = np.roll(values, 1)
    found[block.first] = _given(block, name)
    return found


def _equal(now: dict[str, Any], before: dict[str, Any], names: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.logical_and.reduce([now[name] == before[name] for name in names])


def _numbers(continues: NDArray[np.bool_], block: ps.Block, given: Any) -> NDArray[np.int32]:
    """The place of each event in its run, from 1; a key's first run goes on with the number given."""
    ones = np.ones(len(continues), np.int64)
    return _sums(ones, continues, block, given).astype(np.int32)


def _sums(values: Any, continues: NDArray[np.bool_], block: ps.Block, given: Any) -> Wholes:
    """Sums over runs up to each event; a key's first run goes on with the sum given."""
    added = values.astype(np.int64)
    added[block.first] += np.where(continues[block.first], given, 0)
    begins = ~continues
    begins[block.first] = True
    total = np.cumsum(added)
    first = np.flatnonzero(begins)
    before = (total - added)[first]
    found: Wholes = total - before[np.cumsum(begins) - 1]
    return found
