"""How every measurement speaks: one report, as tables for people or as one JSON object for programs."""

from penstock.reports.here import report_here
from penstock.reports.machine import cores, this_machine
from penstock.reports.report import Check, Machine, Report, Value
from penstock.reports.tables import emit_json, say, show

__all__ = [
    "Check",
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
