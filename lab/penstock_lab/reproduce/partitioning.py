"""The partitioning functions ([003] §5): every figure, and a constructor that goes beyond."""

from penstock_lab.reproduce.experiment import Experiment, Outcome
from penstock_lab.reproduce.partitioning_balance import balance_outcome
from penstock_lab.reproduce.partitioning_parameters import parameters_outcome
from penstock_lab.reproduce.partitioning_settings import full_extent, quick_extent
from penstock_lab.reproduce.partitioning_size import size_outcome
from penstock_lab.reproduce.partitioning_time import time_outcome
from penstock_lab.reproduce.partitioning_toy import toy_checks, toy_rows

__all__ = ["PARTITIONING"]


def _run(*, quick: bool, seed: int) -> Outcome:
    extent = quick_extent if quick else full_extent
    parts = [
        Outcome(tuple(toy_rows()), tuple(toy_checks())),
        balance_outcome(extent, seed),
        parameters_outcome(extent, seed),
        size_outcome(quick=quick, seed=seed),
        time_outcome(quick=quick, seed=seed),
    ]
    return Outcome(
        tuple(row for part in parts for row in part.rows),
        tuple(check for part in parts for check in part.checks),
        {name: figure for part in parts for name, figure in part.figures.items()},
    )


PARTITIONING = Experiment("003", "partitioning functions under skew, Fig. 1 and 3 to 14", _run)
