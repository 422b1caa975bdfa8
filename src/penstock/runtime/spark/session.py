"""The Spark session of runs to which the user gives none."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.functions import SqlSetting

__all__ = ["PRELOADED", "SETTINGS", "prepare", "settings", "spark_session", "sql_setting"]

_ANSI, _ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"

SETTINGS = {
    # Print only errors on the terminal, from the first line on.
    "spark.driver.extraJavaOptions": (
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    ),
    # A small job to a Python worker over TCP waits for delayed acknowledgements, 40 ms at a time.
    "spark.python.unix.domain.socket.enabled": "true",
    # The default manager forks a shell for every offset file on a local disk; this one renames in the JVM.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
}

PRELOADED = {"spark.python.daemon.module": "penstock.runtime.spark.daemon"}
"""Workers begin with their imports done: for wherever they run an interpreter that has Penstock installed."""

_PER_EPOCH = {
    # Adaptive execution would choose the order of an epoch's stages itself; here the epoch decides.
    "spark.sql.adaptive.enabled": "false",
    # To the planner, the combine looks like a whole aggregation; let it use the faster map all the same.
    "spark.sql.codegen.aggregate.map.twolevel.partialOnly": "false",
    # A limit on bytes makes Spark measure the batch after every row; the limit on rows is enough.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Room in that map for the groups of a large epoch; the default of 16 bits costs a tenth more.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
    # Sketches and collected lists would fall back to sorting after 128 keys.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
}


def spark_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active session, or a new one: on the given master, else on all cores of this machine.

    `settings` are Spark's own; some, such as the driver's memory, only work before the JVM starts.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Workers must use the interpreter that has Penstock installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = master or "local[*]"
    builder: Any = SparkSession.builder.appName("penstock").master(master)
    every = SETTINGS | (PRELOADED if master.startswith("local") else {}) | dict(settings or {})
    for name, value in every.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def sql_setting(session: SparkSession) -> SqlSetting:
    """What a session says about the meaning of SQL."""
    return SqlSetting(
        ansi=str(session.conf.get(_ANSI)).lower() == "true",
        zone=str(session.conf.get(_ZONE)),
    )


def prepare(session: SparkSession, setting: SqlSetting) -> None:
    """Settings of the session in which epochs run; the user's own session does not change.

    What SQL means is fixed when the run starts, whatever becomes of the user's session.
    """
    meaning = {_ANSI: str(setting.ansi).lower(), _ZONE: setting.zone}
    for name, value in (_PER_EPOCH | meaning).items():
        session.conf.set(name, value)


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set options of the session for the duration of the block, then restore the old ones."""
    before = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
