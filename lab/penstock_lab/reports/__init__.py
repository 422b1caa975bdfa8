"""The common form of all measurements: one report, as tables for people or as JSON for programs."""

from penstock_lab.reports.here import report_here
from penstock_lab.reports.machine import cores, this_machine
from penstock_lab.reports.report import Check, Difference, Machine, Report, Value
from penstock_lab.reports.tables import emit_json, say, show

__all__ = [
    "Check",
    "Difference",
    "Machine",
    "Report",
    "Value",
    "cores",
    "emit_json",
    "report_here",
    "say",
    "show",
    "this_machine",
]
