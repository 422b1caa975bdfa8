"""How every measurement speaks: one report, as tables for people or as one JSON object for programs."""

from penstock.reports.machine import cores, penstock_version, this_machine
from penstock.reports.report import Check, Machine, Report, Value, now
from penstock.reports.tables import emit_json, say, show

__all__ = [
    "Check",
    "Machine",
    "Report",
    "Value",
    "cores",
    "emit_json",
    "now",
    "penstock_version",
    "say",
    "show",
    "this_machine",
]
