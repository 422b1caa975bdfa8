"""Sizes, durations and times as people read them."""

from datetime import UTC, datetime

__all__ = ["instant", "shown_bytes", "shown_seconds", "shown_time"]


def shown_bytes(size: float) -> str:
    """A size with its unit.

    >>> shown_bytes(0), shown_bytes(1_234_000), shown_bytes(8e13)
    ('0 B', '1.2 MB', '80,000.0 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size:.0f} B"


def shown_seconds(seconds: float) -> str:
    """A duration with the unit that fits it.

    >>> shown_seconds(1.234), shown_seconds(0.0123), shown_seconds(2.5e-6)
    ('1.23 s', '12.3 ms', '2.5 µs')
    """
    if seconds >= 1 or not seconds:
        return f"{seconds:,.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def shown_time(time: datetime | None) -> str:
    """An event time to the second, or "none yet".

    >>> shown_time(datetime(2024, 1, 1, 12, tzinfo=UTC)), shown_time(None)
    ('2024-01-01 12:00:00', 'none yet')
    """
    return "none yet" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def instant(microseconds: int | None) -> datetime | None:
    """A time of the frontier as a datetime; None if it is outside the range of datetime."""
    if microseconds is None:
        return None
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC)
    except (OverflowError, ValueError, OSError):
        return None
