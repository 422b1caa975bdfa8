"""Costs of Penstock's own operators, measured here and now on one thread.

A cluster on paper is only as good as its unit costs; these come from the same kernels that channels run.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow.compute as pc

from penstock.joins import Condition, Frontiers, Held, Join, Pair, Side, Within, step
from penstock.panes import Partials, WindowShape, close_windows, group
from penstock.panes.merges import Elementwise
from penstock.simulate.handover import Handover, best_seconds, measure_handover
from penstock.simulate.records import call_records, integers

__all__ = ["Calibration", "calibrate"]

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_BATCH = 32_768
_SUM = Elementwise(np.add, 0.0, (np.dtype(np.float64),))
# Every window sees the rows: no bound is looked at beside the condition.
_AREA = Condition("abs(l.x - r.x) + abs(l.y - r.y) < 0.001", ("x", "y"), ("x", "y"))


@dataclass(frozen=True)
class Calibration:
    """Seconds of a processor per tuple (`compare`: per pair), and what it costs to hand tuples over."""

    map: float
    filter: float
    aggregate: float
    join: float
    probe: float
    compare: float
    records: Handover
    integers: Handover


@cache
def calibrate(*, quick: bool, seed: int) -> Calibration:
    """Measure everything, in about two seconds (`quick`: one); the seed draws the rows."""
    rng = np.random.default_rng(seed)
    repeats = 3 if quick else 9
    records = call_records(rng, _BATCH, 0, 10 * _SECOND)
    probe, compare = _product(rng, repeats)
    return Calibration(
        map=best_seconds(partial(_map, records), repeats) / _BATCH,
        filter=best_seconds(partial(_filter, records), repeats) / _BATCH,
        aggregate=best_seconds(partial(_aggregate, records, _minute_of_partials(rng)), repeats) / _BATCH,
        join=_equi_join(rng, repeats),
        probe=probe,
        compare=compare,
        records=measure_handover(records, "caller", repeats),
        integers=measure_handover(integers(rng, _BATCH, 0, 10 * _SECOND), "value", repeats),
    )


def _map(records: Any) -> Any:
    """The end of a call and its distance from the origin."""
    end = pc.add(records["begin"], pc.multiply(records["duration"], _SECOND))
    apart = pc.sqrt(pc.add(pc.multiply(records["x"], records["x"]), pc.multiply(records["y"], records["y"])))
    return records.append_column("end", end).append_column("apart", apart)


def _filter(records: Any) -> Any:
    return records.filter(pc.less(records["duration"], 1_800))


def _aggregate(records: Any, kept: Partials) -> None:
    """Ten seconds of calls become partials of a pane, and one window of a minute closes."""
    districts, place = group(records["district"].to_numpy())
    ones = np.ones(len(place))
    lanes = tuple(
        _SUM.scatter(len(districts), place, (values,))
        for values in (ones, records["duration"].to_numpy().astype(np.float64))
    )
    panes = Partials(
        np.concatenate([kept.pane, np.full(len(districts), 5)]),
        np.concatenate([kept.key, districts]),
        tuple((np.concatenate([old[0], new[0]]),) for old, new in zip(kept.lanes, lanes, strict=True)),
    )
    shape = WindowShape(_MINUTE, 10 * _SECOND)
    for _ in close_windows(shape, 0, 1, panes, (_SUM, _SUM)):
        pass


def _minute_of_partials(rng: np.random.Generator) -> Partials:
    """The five panes before."""
    keys = [group(call_records(rng, _BATCH, 0, 1)["district"].to_numpy())[0] for _ in range(5)]
    pane = np.repeat(np.arange(5), [len(each) for each in keys])
    return Partials(pane, np.concatenate(keys), ((rng.random(len(pane)),), (rng.random(len(pane)),)))


def _equi_join(rng: np.random.Generator, repeats: int) -> float:
    """Calls of one caller within a minute of each other: a minute kept, a second new, on both sides."""
    new = 4_096
    kept = call_records(rng, 60 * new, 0, _MINUTE)
    fresh = call_records(rng, new, _MINUTE, _SECOND)
    side = Side("time", keys=("caller",), columns=(("time", "first"), ("x", "x")))
    other = replace(side, columns=(("time", "second"), ("x", "x2")))
    join = Join(side, other, Within(_MINUTE), key_types=(kept.schema.field("caller").type,))
    return best_seconds(partial(_step, join, kept, fresh), repeats) / (2 * new)


def _product(rng: np.random.Generator, repeats: int) -> tuple[float, float]:
    """What a tuple and what a comparison of the Cartesian product costs, from two sizes of window."""
    new = 1_024
    fresh = call_records(rng, new, _MINUTE, 1)
    side = Side("time", columns=(("time", "first"),))
    join = Join(side, replace(side, columns=(("time", "second"),)), Within(_MINUTE), condition=_AREA)
    costs = {}
    for rows in (2_048, 32_768):
        kept = call_records(rng, rows, _MINUTE - _SECOND, 1)
        costs[rows] = best_seconds(partial(_step, join, kept, fresh), repeats) / (2 * new)
    # New tuples also meet the new ones of the other side, half of them each.
    compare = (costs[32_768] - costs[2_048]) / (32_768 - 2_048)
    return max(costs[2_048] - compare * (2_048 + new / 2), 0.0), compare


def _step(join: Join, kept: Any, fresh: Any) -> None:
    nothing = np.zeros(kept.num_rows, np.bool_)
    step(
        join,
        Pair(Held(kept, nothing), Held(kept, nothing)),
        Pair(fresh, fresh),
        Frontiers(_MINUTE, _MINUTE),
        Frontiers(_MINUTE + _SECOND, _MINUTE + _SECOND),
        lambda _: None,
    )
