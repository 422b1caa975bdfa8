"""`penstock bench skew`: what control costs where nothing is to gain, and what it gains where something is.

Every case runs in pairs over the same rows, with control on and off in turn, an epoch each, in one warm
session with eight channels and task slots. Wall time and the processor time of driver, JVM and workers are
told of every run, and of every case their ratio, on over off, with its 95 % interval: no measured run is left
out.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from penstock_lab.bench.on_and_off import Mode, Pair, Ran, cpu_ratio, run_pair, run_pairs, wall_ratio
from penstock_lab.bench.outcomes import outcome_rows
from penstock_lab.bench.session import slotted_session
from penstock_lab.bench.skew_cases import CHANNELS, REAL, Case, cases, real_keys, saved_of_ideal, settled
from penstock_lab.errors import BadBench
from penstock_lab.reports import Check, Report, Value, report_here, say

__all__ = ["skew"]


def skew(  # noqa: PLR0913 -- each is one option of the command
    *,
    only: Sequence[str] = (),
    keys: Path | None = None,
    pairs: int | None = None,
    seed: int = 7,
    quick: bool = False,
    given: Sequence[Case] | None = None,
) -> Report:
    """Run the cases that are named, by default all; `keys` is the file of the one with real keys.

    `pairs` are those of each case, of each seed where there are several; by default as many as it says.
    """
    chosen = _chosen(cases(quick=quick) if given is None else given, only, keys)
    if pairs is not None:
        chosen = [replace(each, pairs=pairs) for each in chosen]
    spark = slotted_session(CHANNELS, quick=quick)
    runs: list[dict[str, Value]] = []
    ratios: list[dict[str, Value]] = []
    predictions: list[dict[str, Value]] = []
    checks: list[Check] = []
    for place, case in enumerate(chosen):
        # A new JVM takes two runs until it has compiled what it needs: a pair for a start, not for each case.
        warm = not quick and not place
        with tempfile.TemporaryDirectory(prefix="penstock-skew-", ignore_cleanup_errors=True) as scratch:
            write = case.write
            if case.keys is None and keys is not None:
                write = partial(case.write, given=real_keys(keys, quick=quick))
            ran = list(_pairs(spark, case, write, Path(scratch), seed, warm=warm))
        for number, pair in enumerate(ran, 1):
            runs += [_run_row(case, number, pair, each) for each in pair.runs]
            predictions += outcome_rows(case.name, f"pair {number}", pair.on.outcomes)
        ratios.append(_ratio_row(case, ran))
        checks += case.checks(ran)
    return report_here("skew", seed, [*runs, *ratios, *predictions], checks)


def _chosen(known: Sequence[Case], only: Sequence[str], keys: Path | None) -> list[Case]:
    unknown = set(only) - {each.name for each in known}
    if unknown:
        names = ", ".join(each.name for each in known)
        raise BadBench(f"no case {min(unknown)!r}; give one of {names}")
    if REAL in only and keys is None:
        raise BadBench(f"case {REAL!r} needs a file of keys; give it with --keys PATH")
    wanted = [each for each in known if not only or each.name in only]
    return [each for each in wanted if each.keys is not None or keys is not None]


def _pairs(  # noqa: PLR0913 -- a case, and where and how it runs
    spark: SparkSession,
    case: Case,
    write: Callable[[Path, int], tuple[int, ...]],
    scratch: Path,
    seed: int,
    *,
    warm: bool,
) -> Iterator[Pair]:
    """All pairs of a case, seed by seed."""
    for number in range(case.seeds):
        folder = scratch / str(number)
        hottest = write(folder, seed + number)
        once = partial(_once, spark, case, folder)
        if warm and not number:
            once(("off", "on"), "warm-up")
        yield from run_pairs(case.pairs, once, seed + number, hottest)


def _once(
    spark: SparkSession, case: Case, folder: Path, order: tuple[Mode, Mode], what: str = ""
) -> dict[Mode, Ran]:
    ran = run_pair(spark, case.query, folder, case.channels, order)
    told = "; ".join(
        f"{mode} {each.cost.wall_s:.1f} s, {each.cost.cpu_s:.1f} CPU s, {each.moves} moves"
        for mode, each in ran.items()
    )
    say(f"{case.name}, control{f', {what}' if what else ''}: {told}")
    return ran


def _run_row(case: Case, number: int, pair: Pair, ran: Ran) -> dict[str, Value]:
    return {
        "section": "runs",
        "case": case.name,
        "pair": number,
        "seed": pair.seed,
        "control": ran.mode,
        "wall_s": round(ran.cost.wall_s, 3),
        "cpu_s": round(ran.cost.cpu_s, 3),
        "epochs": len(ran.rows),
        "moves": ran.moves,
        "moved_mb": round(ran.moved_bytes / 1e6, 2),
        "move_s": round(ran.move_s, 3),
        "busiest_over_mean": " ".join(f"{each:.2f}" for each in settled(case, ran)),
        "copies": round(ran.copies, 4),
    }


def _ratio_row(case: Case, pairs: Sequence[Pair]) -> dict[str, Value]:
    wall, cpu, saved = wall_ratio(pairs), cpu_ratio(pairs), saved_of_ideal(case, pairs)
    return {
        "section": "control on over off, mean and 95 % interval",
        "case": case.name,
        "pairs": len(pairs),
        "wall_ratio": round(wall.mean, 4),
        "wall_low": round(wall.low, 4),
        "wall_high": round(wall.high, 4),
        "cpu_ratio": round(cpu.mean, 4),
        "cpu_low": round(cpu.low, 4),
        "cpu_high": round(cpu.high, 4),
        "saved_of_ideal": None if saved is None else round(saved.mean, 3),
        "saved_low": None if saved is None else round(saved.low, 3),
        "saved_high": None if saved is None else round(saved.high, 3),
    }
