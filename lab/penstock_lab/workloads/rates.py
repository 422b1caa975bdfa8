"""The six workloads of [000] §6.1.1: rates of many streams, period by period, with what is declared of them.

The paper gives 80 streams and the shapes; rates and lengths are ours. A low rate is 50 to 150 rows/s and a
high one 200 to 350 rows/s, so that gates of 1,000 rows/s hold three to twenty streams, and 8 to 22 gates hold
all. A swing from low to high and back takes 20 to 60 periods of the controller.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["WORKLOADS", "Declared", "Rates", "rates_of"]

Floats = NDArray[np.float64]

LOW, HIGH = (50.0, 150.0), (200.0, 350.0)
ON = (150.0, 450.0)
SWING = (20.0, 60.0)  # periods of pairs, which differ from pair to pair
COMMON = 60.0  # the period that all streams share where the total varies
APART = 20.0  # how far apart they are in it
BURST, PAUSE = 10.0, 10.0  # mean periods on and off
SECONDS = 10.0  # of a period
JUMP, TREND = 0.0, 1.0

Declared = Mapping[str, Floats]
"""Characteristics by name, one value a stream, NaN where nothing is declared; times are in seconds.

`transition` is 0 for a jump and 1 for a trend. No phase is declared.
"""


@dataclass(frozen=True)
class Rates:
    """Rows per second of every stream (columns) in every period (rows), and what its client declares."""

    name: str
    rows: Floats
    declared: Declared


def _constant(rng: np.random.Generator, periods: int, streams: int) -> tuple[Floats, Declared]:
    mean = rng.uniform(LOW[0], HIGH[1], streams)
    return np.tile(mean, (periods, 1)), {"expected_rate": mean, "max_rate": mean, "min_rate": mean}


def _step(turn: Floats) -> Floats:
    """High in the first half of every turn."""
    return (np.mod(turn, 1.0) < 0.5).astype(np.float64)


def _triangle(turn: Floats) -> Floats:
    """Rises in the first half of every turn, falls in the second."""
    height: Floats = 1 - np.abs(2 * np.mod(turn, 1.0) - 1)
    return height


def _swings(low: Floats, high: Floats, period: Floats, transition: float) -> Declared:
    return {
        "min_rate": low,
        "max_rate": high,
        "expected_rate": (low + high) / 2,
        "period": period * SECONDS,
        "transition": np.full(len(low), transition),
    }


def _pairs(shape: Callable[[Floats], Floats], transition: float) -> "_Draw":
    def draw(rng: np.random.Generator, periods: int, streams: int) -> tuple[Floats, Declared]:
        half = (streams + 1) // 2
        low, high = rng.uniform(*LOW, half), rng.uniform(*HIGH, half)
        period, phase = rng.uniform(*SWING, half).round(), rng.random(half)
        turn = np.arange(periods)[:, None] / period + phase
        first, second = (low + (high - low) * shape(each) for each in (turn, turn + 0.5))
        low, high, period = (np.repeat(each, 2)[:streams] for each in (low, high, period))
        both = np.stack([first, second], axis=2).reshape(periods, -1)[:, :streams]
        return both, _swings(low, high, period, transition)

    return draw


def _varying(shape: Callable[[Floats], Floats], transition: float) -> "_Draw":
    def draw(rng: np.random.Generator, periods: int, streams: int) -> tuple[Floats, Declared]:
        low, high = rng.uniform(*LOW, streams), rng.uniform(*HIGH, streams)
        offset = rng.uniform(0, APART, streams).round()
        turn = (np.arange(periods)[:, None] + offset) / COMMON
        return low + (high - low) * shape(turn), _swings(low, high, np.full(streams, COMMON), transition)

    return draw


def _on_and_off(rng: np.random.Generator, periods: int, streams: int) -> tuple[Floats, Declared]:
    peak = rng.uniform(*ON, streams)
    share = BURST / (BURST + PAUSE)
    on = rng.random(streams) < share
    turns = int(4 * periods / min(BURST, PAUSE)) + 40
    lengths = rng.exponential(1.0, (turns, streams))
    odd = np.arange(turns)[:, None] % 2 == 1
    lengths *= np.where(on[None, :] ^ odd, BURST, PAUSE)
    ends = np.cumsum(lengths, axis=0)
    # The part of each period that lies in bursts, from the time on up to its start and to its end.
    starts = np.vstack([np.zeros(streams), ends[:-1]])
    bursts = on[None, :] ^ odd
    rows = np.zeros((periods, streams))
    for stream in range(streams):
        begins, stops = starts[bursts[:, stream], stream], ends[bursts[:, stream], stream]
        edges = np.arange(periods + 1, dtype=np.float64)
        on_until = np.clip(edges[:, None] - begins, 0, stops - begins).sum(axis=1)
        rows[:, stream] = np.diff(on_until) * peak[stream]
    return rows, {
        "min_rate": np.zeros(streams),
        "expected_rate": share * peak,
        "burst_peak": peak,
        "burst_share": np.full(streams, share),
        "period": np.full(streams, (BURST + PAUSE) * SECONDS),
    }


_Draw = Callable[[np.random.Generator, int, int], tuple[Floats, Declared]]

WORKLOADS: Mapping[str, _Draw] = {
    "constw": _constant,
    "psfcw": _pairs(_step, JUMP),
    "ptfcw": _pairs(_triangle, TREND),
    "sfvar": _varying(_step, JUMP),
    "tfvar": _varying(_triangle, TREND),
    "bursty": _on_and_off,
}


def rates_of(name: str, rng: np.random.Generator, periods: int, *, streams: int = 80) -> Rates:
    """A workload: in all but `bursty`, rows come at random with the rate as their mean (exponential gaps).

    >>> made = rates_of("psfcw", np.random.default_rng(1), 100)
    >>> made.rows.shape, float(np.ptp(made.rows.sum(axis=1)) / made.rows.sum(axis=1).mean()) < 0.03
    ((100, 80), True)
    """
    mean, declared = WORKLOADS[name](rng, periods, streams)
    rows = mean if name == "bursty" else rng.poisson(mean * SECONDS) / SECONDS
    return Rates(name, np.asarray(rows, np.float64), declared)
