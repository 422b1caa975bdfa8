"""A report of what was measured on this machine, now, by this version."""

from collections.abc import Iterable, Mapping

from penstock_lab.reports.machine import penstock_version, this_machine
from penstock_lab.reports.report import Check, Report, Value, now

__all__ = ["report_here"]


def report_here(name: str, seed: int, rows: Iterable[Mapping[str, Value]], checks: Iterable[Check]) -> Report:
    """The outcome of a measurement that has just been taken."""
    return Report(name, penstock_version(), now(), this_machine(), seed, tuple(rows), tuple(checks))
