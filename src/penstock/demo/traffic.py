"""The traffic query: what every 500 m tile of the city saw in the last hour, minute by minute."""

from pathlib import Path

import penstock as ps
from penstock.demo.city import DELAY_SECONDS
from penstock.demo.queue_end import QueueEnd

__all__ = ["SCHEMA", "TILE", "QueueEnd", "traffic"]

SCHEMA = "time timestamp, vehicle string, lon double, lat double, speed double, kind string"
TILE = 500


def traffic(feed: Path) -> ps.Relation:
    """The query over a folder that fills with the city's Parquet files."""
    reports = ps.stream(
        "reports",
        schema=SCHEMA,
        time="time",
        delay=f"{DELAY_SECONDS:.0f} seconds",
        source=ps.files(feed, live=True),
    )
    return (
        reports.where("kind = 'traffic'")
        .select(area=f"grid(lon, lat, {TILE})", speed="speed")
        .group_by("area")
        .window("60 minutes", slide="1 minute")
        .agg(reports=ps.count(), mean=ps.avg("speed"), top=ps.max("speed"), jam=QueueEnd("speed"))
    )
