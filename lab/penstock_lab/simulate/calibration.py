"""Costs of Penstock's own operators, measured here and now on one thread.

A cluster on paper is only as good as its unit costs; these come from the same kernels that channels run.
What an epoch costs beyond its tuples is divided among them, so the sizes of the epochs below matter.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from time import thread_time
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.aggregates.merges import Elementwise, Lanes, group
from penstock.operators.joins.spec import Condition, Frontiers, JoinSpec, Pair, Side, Within
from penstock.operators.joins.step import HeldSide, step
from penstock.operators.windows.sliding import Partials, close_windows
from penstock.routing import SlidingPanes
from penstock_lab.simulate.handover import Clock, Handover, best_seconds, measure_handover
from penstock_lab.simulate.records import call_records, integers

__all__ = ["Calibration", "Work", "calibrate"]

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_BATCH = 32_768
_SUM = Elementwise(np.add, 0.0, (np.dtype(np.float64),))
_AREA = Condition("abs(l.x - r.x) + abs(l.y - r.y) < 0.001", ("x", "y"), ("x", "y"))

_Rows = Callable[[np.random.Generator, int, int, int], Any]


@dataclass(frozen=True)
class Work:
    """Seconds of a processor for a tuple."""

    map: float
    filter: float
    aggregate: float
    join: float


@dataclass(frozen=True)
class Calibration:
    """Work on call records and on plain integers, what it costs to hand both over, and comparisons.

    A tuple of the Cartesian product costs `probe` seconds and `compare` for every pair.
    """

    records: Work
    integers: Work
    record_links: Handover
    integer_links: Handover
    probe: float
    compare: float


@cache
def calibrate(*, quick: bool, seed: int, clock: Clock = thread_time) -> Calibration:
    """Measure everything, in a few seconds (`quick`: about one); the seed draws the rows."""
    rng = np.random.default_rng(seed)
    repeats = 3 if quick else 9
    calls = call_records(rng, _BATCH, 0, 10 * _SECOND)
    numbers = integers(rng, _BATCH, 0, 10 * _SECOND)
    probe, compare = _product(rng, repeats, clock)
    return Calibration(
        records=Work(
            map=best_seconds(partial(_map_call, calls), repeats, clock) / _BATCH,
            filter=best_seconds(partial(_filter, calls, "duration", 1_800), repeats, clock) / _BATCH,
            aggregate=_aggregate(calls["district"].to_numpy(), repeats, clock),
            join=_join(rng, call_records, "caller", kept=60, repeats=repeats, clock=clock),
        ),
        integers=Work(
            map=best_seconds(partial(_map_integer, numbers), repeats, clock) / _BATCH,
            filter=best_seconds(partial(_filter, numbers, "value", 50_000), repeats, clock) / _BATCH,
            aggregate=_aggregate(numbers["value"].to_numpy() % 1_000, repeats, clock),
            join=_join(rng, integers, "value", kept=1, repeats=repeats, clock=clock),
        ),
        record_links=measure_handover(calls, "caller", repeats, clock),
        integer_links=measure_handover(numbers, "value", repeats, clock),
        probe=probe,
        compare=compare,
    )


def _map_call(calls: Any) -> Any:
    """The end of a call and its distance from the origin."""
    end = pc.add(calls["begin"], pc.multiply(calls["duration"], _SECOND))
    apart = pc.sqrt(pc.add(pc.multiply(calls["x"], calls["x"]), pc.multiply(calls["y"], calls["y"])))
    return calls.append_column("end", end).append_column("apart", apart)


def _map_integer(numbers: Any) -> Any:
    return numbers.set_column(1, "value", pc.add(numbers["value"], 1))


def _filter(rows: Any, column: str, below: int) -> Any:
    return rows.filter(pc.less(rows[column], below))


def _aggregate(keys: NDArray[np.int64], repeats: int, clock: Clock) -> float:
    """Ten seconds of tuples become a pane of counts and sums, and one window of a minute closes."""
    values = (np.ones(len(keys)), keys.astype(np.float64))
    windows = SlidingPanes(span=6, stride=1)

    def pane() -> tuple[NDArray[np.int64], tuple[Lanes, ...]]:
        distinct, place = group(keys)
        return distinct, tuple(_SUM.scatter(len(distinct), place, (each,)) for each in values)

    def epoch() -> None:
        distinct, lanes = pane()
        numbers = np.concatenate([np.repeat(np.arange(5), len(known)), np.full(len(distinct), 5)])
        whole = tuple(
            (np.concatenate([*[old[0]] * 5, new[0]]),) for old, new in zip(before, lanes, strict=True)
        )
        rows = Partials(numbers, np.concatenate([*[known] * 5, distinct]), whole)
        for _ in close_windows(windows, 0, 1, rows, (_SUM, _SUM)):
            pass

    known, before = pane()
    return best_seconds(epoch, repeats, clock) / len(keys)


def _join(  # noqa: PLR0913 -- a case in full
    rng: np.random.Generator, rows: _Rows, key: str, *, kept: int, repeats: int, clock: Clock
) -> float:
    """A self-join by key: one second is new on both sides, and `kept` seconds before it are held."""
    new = _BATCH // 8
    held = rows(rng, kept * new, _MINUTE - kept * _SECOND, kept * _SECOND)
    fresh = rows(rng, new, _MINUTE, _SECOND)
    side = Side("time", keys=(key,), columns=(("time", "first"),))
    other = replace(side, columns=(("time", "second"),))
    types = (held.schema.field(key).type,)
    join = JoinSpec(side, other, Within(kept * _SECOND), key_types=types)
    return best_seconds(partial(_step, join, held, fresh), repeats, clock) / (2 * new)


def _product(rng: np.random.Generator, repeats: int, clock: Clock) -> tuple[float, float]:
    """What a tuple and what a comparison of the Cartesian product costs, from two sizes of window."""
    new, few, many = 1_024, 2_048, 32_768
    fresh = call_records(rng, new, _MINUTE, 1)
    side = Side("time", columns=(("time", "first"),))
    join = JoinSpec(side, replace(side, columns=(("time", "second"),)), Within(_MINUTE), condition=_AREA)
    costs = {}
    for rows in (few, many):
        held = call_records(rng, rows, _MINUTE - _SECOND, 1)
        costs[rows] = best_seconds(partial(_step, join, held, fresh), repeats, clock) / (2 * new)
    compare = (costs[many] - costs[few]) / (many - few)
    # New tuples also meet the new ones of the other side: each pair once, half a pair for either.
    return max(costs[few] - compare * (few + new / 2), 0.0), compare


def _step(join: JoinSpec, held: Any, fresh: Any) -> None:
    kept = HeldSide(held, np.zeros(held.num_rows, np.bool_))
    step(
        join,
        Pair(kept, kept),
        Pair(fresh, fresh),
        Frontiers(_MINUTE, _MINUTE),
        Frontiers(_MINUTE + _SECOND, _MINUTE + _SECOND),
        lambda _: None,
    )
