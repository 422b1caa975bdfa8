"""Runs that start at the same time in one session."""

from concurrent.futures import ThreadPoolExecutor

from penstock.runtime.spark.frames import sql_over


def test_each_query_reads_its_own_frame(spark):
    frames = {name: spark.range(1).selectExpr(f"id AS {name}") for name in ("first", "second")}

    def columns(name):
        return {tuple(sql_over(frames[name], "SELECT * FROM _ps_rows").columns) for _ in range(150)}

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(columns, frames)) == [{("first",)}, {("second",)}]
