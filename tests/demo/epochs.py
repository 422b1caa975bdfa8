"""Epochs as a run reports them, for the tests of what shows them."""

from datetime import UTC, datetime, timedelta

from penstock import EpochProgress

SIX = datetime(2024, 5, 14, 6, tzinfo=UTC)


def epoch(number, **other):
    fields = {
        "epoch": number,
        "rows": 1000,
        "results": 40,
        "late": 2,
        "rejected": 1,
        "seconds": 0.5,
        "phases": {"read": 0.125, "kernel": 0.375},
        "frontier": SIX + timedelta(minutes=number),
        "lag_seconds": 5.0,
        "state_rows": 500,
        "state_bytes": 2_000_000,
        "combining": "map",
    }
    return EpochProgress(**fields | other)
