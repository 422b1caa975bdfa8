"""JVMs for short runs, where starting takes longer than running.

`python tests/jvms.py FILE` writes the archive of classes that they start from; `make test` does it once.
"""

import os
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Spark's classes as a JVM keeps them in memory, parsed and linked; without the file they are loaded anew."""

_LEAN = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def lean() -> None:
    """Let the drivers that this process and its children start take little processor time.

    One thread that collects garbage, no optimising compilation, no search for errors in Spark's bytecode: a
    run of three epochs took 24 s of processor time instead of 31, measured once on a busy machine. With the
    archive a JVM that runs one small query takes 5.9 s instead of 9.2. With one level of compilation Java
    keeps 48 MB for compiled code. A minute of queries fills them; from then on it would interpret all code.
    """
    archive = f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"
    os.environ["SPARK_SUBMIT_OPTS"] = _LEAN + (archive if ARCHIVE.exists() else "")


def write_archive(target: Path) -> None:
    """Run a query that uses most of what tests use, and let its JVM write down the classes that it loaded."""
    import psutil

    unfinished = target.with_suffix(".unfinished")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_LEAN} -XX:ArchiveClassesAtExit={unfinished} -Xlog:cds=off"
    from sessions import quick_session

    session = quick_session("local[2]")
    with tempfile.TemporaryDirectory() as folder:
        _run(session, Path(folder))
    jvm = psutil.Process(session._jvm.java.lang.ProcessHandle.current().pid())
    session.stop()
    session.sparkContext._gateway.shutdown()
    session.sparkContext._gateway.proc.stdin.close()
    jvm.wait(120)
    unfinished.rename(target)


def _run(session, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import penstock as ps

    rows = pa.table({"time": pa.array(range(10), pa.timestamp("s", tz="UTC")), "key": ["a", "b"] * 5})
    (folder / "in").mkdir()
    pq.write_table(rows, folder / "in" / "rows.parquet")
    schema = "time timestamp, key string"
    left = ps.stream("left", schema, time="time", source=ps.files(str(folder / "in")))
    right = ps.stream("right", schema, time="time", source=ps.rows([rows]))
    joined = left.join(right, "key", within="2 seconds", suffixes=("", "_right"))
    windows = joined.group_by("key").window("4 seconds", slide="2 seconds").agg(rows=ps.count())
    windows.start(ps.parquet(str(folder / "out")), checkpoint=str(folder / "state"), session=session).wait()


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]))
