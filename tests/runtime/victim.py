"""A run that may be killed at any epoch_id: python victim.py INPUT OUTPUT CHECKPOINT."""

import sys

import penstock as ps
from runtime.reports import reports
from sessions import interpret, quick_session


def queries(path):
    """Windows and a left outer join over one stream."""
    source = reports(path)
    windows = (
        source.where("n % 10 != 3")
        .group_by("area")
        .window("20 seconds", slide="3 seconds")
        .agg(
            reports=ps.count(),
            total=ps.sum("n"),
            mean=ps.avg("speed"),
            top=ps.max("speed"),
            newest=ps.last("n"),
            areas=ps.min("area"),
        )
    )
    fast, slow = source.where("speed > 100 AND n % 5 = 0"), source.where("speed < 20 AND n % 3 = 0")
    pairs = fast.join(slow, "area", within="4 seconds", how="left", suffixes=("_fast", "_slow"))
    return windows, pairs


if __name__ == "__main__":
    interpret(quick_session())
    source, sink, checkpoint = sys.argv[1:]
    sinks = [ps.parquet(f"{sink}/{name}") for name in ("windows", "pairs")]
    ps.outputs(*queries(source)).start(*sinks, checkpoint=checkpoint).wait()
