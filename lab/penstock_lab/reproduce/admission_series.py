"""The strategies of admission on measured rates from files, on which nothing was tuned.

Streams are pieces of the series, each scaled to a mean like those of the six workloads; nothing is declared
of them, so that DRF-M is DRF here.
"""

import numpy as np

from penstock_lab.reports import Check, say
from penstock_lab.reproduce.admission import OURS, PROMISE, STREAMS, compare, planners
from penstock_lab.reproduce.experiment import Data, Experiment, Outcome
from penstock_lab.reproduce.rows import Row, row
from penstock_lab.workloads import read_series, streams_of

__all__ = ["SERIES"]

MEASURES = (
    "redirections a period",
    "gates over optimal, %",
    "rows that wait over 5 s, %",
    "rows buffered a period",
)


def run_on(data: Data, *, quick: bool, seed: int) -> Outcome:
    """Every strategy on every file."""
    seeds, periods = (1, 120) if quick else (3, 300)
    rows: list[Row] = []
    checks: list[Check] = []
    for path in data.series:
        series = list(read_series(path).values())
        made = [
            streams_of(series, np.random.default_rng([seed, number]), periods, streams=STREAMS)
            for number in range(seeds)
        ]
        found = compare(made, planners())
        for name, spread in found.items():
            moves = spread["redirections a period"][0]
            say(f"{path.name} {name}: {moves:.2f} redirections a period")
            rows += [
                row(
                    "10, 11",
                    name,
                    path.name,
                    each,
                    round(spread[each][0], 3),
                    None,
                    f"± {spread[each][1]:.2f}",
                )
                for each in MEASURES
            ]
        ratio = found[OURS]["redirections a period"][0] / found["DRF-M"]["redirections a period"][0]
        checks.append(
            Check(
                f"000/series {path.name}: ours over DRF-M's redirections",
                round(ratio, 3),
                PROMISE,
                ceiling=1.0,
            )
        )
    return Outcome(tuple(rows), tuple(checks))


SERIES = Experiment("000/series", "admission strategies: on measured rates", run_on=run_on, needs="--series")
