"""A run over gates that may be killed at any epoch_id: python gates_victim.py ADDRESS OUTPUT CHECKPOINT."""

import sys

import penstock as ps
from sessions import quick_session


def query(address):
    """Every row as it is, and windows of every stream."""
    reports = ps.stream(
        "reports",
        "time timestamp, stream string, n bigint",
        time="time",
        key="stream",
        source=ps.gates(address, stream_column="stream", patience="1 hour"),
    )
    windows = (
        reports.group_by("stream")
        .window("5 seconds")
        .agg(rows=ps.count(), low=ps.min("n"), high=ps.max("n"), total=ps.sum("n"))
    )
    return ps.outputs(reports.select("stream", "n"), windows)


if __name__ == "__main__":
    quick_session()
    address, sink, checkpoint = sys.argv[1:]
    run = query(address).start(
        ps.parquet(f"{sink}/rows"), ps.parquet(f"{sink}/windows"), checkpoint=checkpoint
    )
    run.wait()
