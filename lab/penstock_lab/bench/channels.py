"""`penstock bench channels`: a run whose number of channels follows a load that rises eightfold and falls.

A run that may have one to eight channels starts on one; another has eight all the time. Both have the same
load, in turn. Then the load stands still for 300 epochs, in which nothing may change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock_lab.bench.channel_steps import steps_of
from penstock_lab.bench.outcomes import outcome_rows
from penstock_lab.bench.paired import in_turn
from penstock_lab.bench.session import slotted_session
from penstock_lab.bench.under_load import Load, UnderLoad, run_under_load
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["FULL", "QUICK", "Size", "channels"]

MOST = 8
"""The most channels, and the task slots."""

MOST_MOVED, MOST_CPU = 1.1, 0.7
FOLLOWING, FIXED, STEADY = "1 to 8 channels", "8 channels", "steady load"
WAYS: Mapping[str, dict[str, Any]] = {FOLLOWING: {"channels": (1, MOST)}, FIXED: {"channels": MOST}}
_SHOWN_S = 5.0


@dataclass(frozen=True)
class Size:
    """The load, in so many pairs; then `steady` channels' worth of load.

    That stands for `settle` epochs, after which nothing may change in `epochs` more.
    """

    load: Load
    pairs: int = 2
    steady: float = 2.5
    settle: int = 80
    epochs: int = 300
    warm_s: float = 15.0
    unjudged: str = ""


# The first seconds at low load hold the start of the run, or the way back to it.
FULL = Size(
    Load(
        corners=((0, 0.6), (30, 0.6), (60, 4.8), (100, 4.8), (130, 0.6), (180, 0.6)),
        watched=((12, 30), (155, 180)),
    )
)
QUICK = Size(
    Load(
        corners=((0, 0.3), (6, 0.3), (8, 2.4), (14, 2.4), (16, 0.3), (24, 0.3)),
        watched=((2, 6), (20, 24)),
        keys=500,
    ),
    pairs=1,
    steady=1.0,
    settle=4,
    epochs=10,
    warm_s=0.0,
    unjudged="a few seconds of load; the bounds are for three minutes of it",
)


def channels(*, seed: int = 7, quick: bool = False, size: Size | None = None) -> Report:
    """Run the load both ways in turn, then the steady one."""
    size = size or (QUICK if quick else FULL)
    spark = slotted_session(MOST, quick=quick)
    if size.warm_s:
        say("warm-up")
        warm = replace(size.load, corners=((0, 1.0), (size.warm_s, 1.0)), watched=())
        run_under_load(spark, warm, WAYS[FIXED], seed)
    found: dict[str, list[UnderLoad]] = {FOLLOWING: [], FIXED: []}
    for number, order in enumerate(in_turn(size.pairs, FOLLOWING, FIXED), 1):
        for way in order:
            say(f"{way}, pair {number}: {size.load.seconds:.0f} s of load")
            found[way].append(run_under_load(spark, size.load, WAYS[way], seed))
    last = size.settle + size.epochs
    say(f"{STEADY}: {last} epochs")
    level = replace(size.load, corners=((0, size.steady), (100 * last, size.steady)), watched=())
    steady = run_under_load(spark, level, WAYS[FOLLOWING], seed, epochs=last)
    named = [
        *((way, str(number), ran) for way, runs in found.items() for number, ran in enumerate(runs, 1)),
        (STEADY, "", steady),
    ]
    rows = [_run_row(*each) for each in named]
    rows += _over_time(size.load, found)
    for each in named:
        rows += _step_rows(*each)
    for way, pair, ran in named:
        rows += outcome_rows(way, f"pair {pair}" if pair else "", ran.outcomes)
    return report_here("channels", seed, rows, _checks(size, found, steady))


def _run_row(way: str, pair: str, ran: UnderLoad) -> dict[str, Value]:
    numbers = [each.channels for each in ran.seen]
    return {
        "section": "runs",
        "case": way,
        "pair": pair,
        "epochs": len(ran.seen),
        "rows": ran.rows,
        "missing": ran.missing,
        "channels": f"{min(numbers)} to {max(numbers)}",
        "changes": len(steps_of(ran.seen)),
        "cpu_s": round(ran.cpu_s, 2),
        "low_load_cpu_s": round(ran.watched_cpu_s, 2) if ran.watched_cpu_s else None,
    }


def _over_time(load: Load, found: Mapping[str, Sequence[UnderLoad]]) -> list[dict[str, Value]]:
    """The load and the channels of every run, every few seconds."""
    return [
        {
            "section": "channels over time",
            "second": second,
            "load": round(load.at(second), 2),
            **{
                f"{way}, pair {number}": ran.channels_at(second)
                for way, runs in found.items()
                for number, ran in enumerate(runs, 1)
            },
        }
        for second in np.arange(0, load.seconds + 1, _SHOWN_S).tolist()
    ]


def _step_rows(way: str, pair: str, ran: UnderLoad) -> list[dict[str, Value]]:
    return [
        {
            "section": "changes of the number of channels",
            "case": way,
            "pair": pair,
            "epoch": each.epoch,
            "before": each.before,
            "after": each.after,
            "state_mb": round(each.state_bytes / 1e6, 3),
            "moved_mb": round(each.moved_bytes / 1e6, 3),
            "moved_over_ideal": round(each.over_ideal, 3) if each.state_bytes else None,
        }
        for each in steps_of(ran.seen)
    ]


def _checks(size: Size, found: Mapping[str, Sequence[UnderLoad]], steady: UnderLoad) -> list[Check]:
    following, fixed = found[FOLLOWING], found[FIXED]
    every = [*following, *fixed, steady]
    exact = Check(
        "results that are missing or wrong, against a batch, all runs",
        sum(each.missing for each in every),
        "exactly once, however often the number of channels changes",
        ceiling=0,
    )
    return [
        exact,
        *(replace(each, unjudged=size.unjudged) for each in _judged(size, following, fixed, steady)),
    ]


def _judged(
    size: Size, following: Sequence[UnderLoad], fixed: Sequence[UnderLoad], steady: UnderLoad
) -> list[Check]:
    steps = [step for each in (*following, steady) for step in steps_of(each.seen) if step.state_bytes]
    late = [step for step in steps_of(steady.seen) if step.epoch >= size.settle]
    low = sum(each.watched_cpu_s for each in following) / sum(each.watched_cpu_s for each in fixed)
    return [
        Check(
            "channels at the start, the most of all runs",
            max(each.seen[0].channels for each in following),
            "a run starts on the least",
            ceiling=1,
        ),
        Check(
            f"channels under the highest load of {size.load.most:g}, the least of all runs",
            min(max(seen.channels for seen in each.seen) for each in following),
            "channels follow the load: fewer fall behind",
            floor=float(np.ceil(size.load.most)),
        ),
        Check(
            "channels at the end, the most of all runs",
            max(each.seen[-1].channels for each in following),
            "channels follow the load down again",
            ceiling=2,
        ),
        Check(
            "moved bytes over what had to move, the worst step",
            round(max((each.over_ideal for each in steps), default=0.0), 3),
            "only state that has to move moves",
            ceiling=MOST_MOVED,
        ),
        Check(
            "CPU at low load over that of eight fixed channels",
            round(low, 3),
            "fewer channels cost less",
            ceiling=MOST_CPU,
        ),
        Check(f"changes in {size.epochs} steady epochs", len(late), "a steady load is left alone", ceiling=0),
    ]
