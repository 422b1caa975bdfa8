"""A query on a cluster of two executors: python on_cluster.py CHECKPOINT."""

import datetime as dt
import json
import sys

import penstock as ps
from penstock_lab.bench.cluster import standalone_cluster

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def results(session, checkpoint):
    """The rows of a windowed query on three channels, and how many executors there are."""
    rows = [
        [
            {"time": START + dt.timedelta(minutes=minute, seconds=n), "key": n % 7, "value": minute}
            for n in range(60)
        ]
        for minute in range(3)
    ]
    stream = ps.stream("r", "time timestamp, key bigint, value bigint", "time", source=ps.rows(rows))
    windows = stream.group_by("key").window("2 minutes", slide="1 minute")
    sink = ps.memory()
    query = windows.agg(n=ps.count(), total=ps.sum("value"))
    query.start(sink, checkpoint=checkpoint, session=session, channels=3).wait()
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    return {"executors": executors, "rows": sorted(map(str, sink.table().to_pylist()))}


if __name__ == "__main__":
    with standalone_cluster(2) as session:
        print(json.dumps(results(session, sys.argv[1])))  # noqa: T201 -- the test reads it
