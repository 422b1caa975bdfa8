"""Runs that start at the same time in one session."""

from concurrent.futures import ThreadPoolExecutor

import penstock as ps
from penstock.runtime.spark.frames import stepped


def test_each_query_reads_its_own_frame(spark):
    stream = ps.stream("t", "time timestamp, n bigint", "time")
    steps = {name: (stream.select("time", **{name: "n"}).operator,) for name in ("first", "second")}
    frame = spark.sql("SELECT timestamp '2024-01-01' AS time, id AS n, id AS _ps_time FROM range(1)")

    def columns(name):
        # Steps are evaluated over a view of the session, whose name all runs share.
        return {tuple(stepped(frame, steps[name]).columns) for _ in range(150)}

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(columns, steps))
    assert found == [{("time", "first", "_ps_time")}, {("time", "second", "_ps_time")}]
