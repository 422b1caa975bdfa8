"""JVMs for short runs: little processor time. `python tests/jvms.py` writes the archive of classes they map.

A JVM that maps it neither reads nor verifies those classes one by one, a third of what a short run costs.
"""

import datetime as dt
import os
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
_START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def lean() -> None:
    """Let the drivers that this process and its children start cost little.

    One thread that collects garbage, no optimising compilation, no search for errors in Spark's bytecode. An
    archive of another Spark or Java is passed over in silence.
    """
    options = [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:-BytecodeVerificationRemote",
    ]
    if ARCHIVE.exists():
        options += [f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:disable"]
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)


def write(archive: Path) -> None:
    """Write the classes of a short run; the JVM does so when it ends."""
    from pyspark import SparkContext

    new = archive.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={new} -Xlog:disable"
    with tempfile.TemporaryDirectory() as folder:
        _run(Path(folder))
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    new.replace(archive)


def _run(folder: Path) -> None:
    """Windows of two epochs into files, and a batch query."""
    import penstock as ps
    from sessions import quick_session

    rows = [[{"time": _START + dt.timedelta(seconds=n), "k": n % 3, "v": n}] for n in (1, 20)]
    stream = ps.stream("s", "time timestamp, k bigint, v bigint", "time", source=ps.rows(rows))
    windows = stream.where("v > 0").group_by("k").window("6 seconds", slide="2 seconds").agg(n=ps.sum("v"))
    session = quick_session("local[2]")
    windows.start(ps.parquet(folder / "out"), checkpoint=folder / "state", channels=2).wait()
    session.createDataFrame([(1, "a")], "n int, s string").groupBy("s").count().collect()
    session.stop()


if __name__ == "__main__":
    write(ARCHIVE)
