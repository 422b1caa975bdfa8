"""Linear Road (Arasu et al., VLDB 2004) on the public API of Penstock: traffic, queries and a validator."""

from penstock_lab.linear_road.queries import (
    LinearRoad,
    linear_road,
    position_reports,
    report_windows,
    segment_statistics,
)
from penstock_lab.linear_road.traffic import Traffic, read_trace
from penstock_lab.linear_road.validator import Truth, Verdict

__all__ = [
    "LinearRoad",
    "Traffic",
    "Truth",
    "Verdict",
    "linear_road",
    "position_reports",
    "read_trace",
    "report_windows",
    "segment_statistics",
]
