"""The Spark session in which everything is measured, and the settings of Spark's own operators in it."""

from pyspark.sql import SparkSession

from penstock.runtime.spark.session import SETTINGS, settings, spark_session
from penstock_lab.reports.machine import cores, this_machine

__all__ = ["measuring_session", "settings", "slotted_session", "stock_settings", "tuned_settings"]

_JAVA = "spark.driver.extraJavaOptions"
_STOCK_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
}


def measuring_session(*, quick: bool = False) -> SparkSession:
    """The active session, or Penstock's own with half of the machine's memory as heap.

    Spark's default of 1 GB is too little for the state of its own `window()` at a hundredfold overlap, and
    the heap cannot be changed once the JVM runs. In a `quick` measurement the JVM runs without its
    optimising compiler, which would take half of all processor time and not pay off before the end.
    """
    return spark_session(settings=_chosen(quick=quick))


def slotted_session(slots: int, *, quick: bool = False) -> SparkSession:
    """The active session, or one with this number of task slots, whatever the number of cores."""
    return spark_session(f"local[{slots}]", _chosen(quick=quick))


def _chosen(*, quick: bool) -> dict[str, str]:
    chosen = {"spark.driver.memory": f"{this_machine().memory // 2}m"}
    if quick:
        chosen[_JAVA] = f"{SETTINGS[_JAVA]} -XX:TieredStopAtLevel=1"
    return chosen


def stock_settings() -> dict[str, str]:
    """The tuned settings with the default checkpoint writer of Spark."""
    return {**tuned_settings(), **_STOCK_CHECKPOINTS}


def tuned_settings() -> dict[str, str]:
    """What a Spark user with this machine would set, with the checkpoint writer of Penstock's session."""
    # One state partition per core instead of the default of 200. The HDFS-backed store keeps its state in
    # memory, which is faster at this size: five times for the join, measured once against RocksDB.
    package = "org.apache.spark.sql.execution.streaming.state"
    return {
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.streaming.stateStore.providerClass": f"{package}.HDFSBackedStateStoreProvider",
        "spark.sql.streaming.statefulOperator.allowMultiple": "true",
        # Spark's default: without the epoch that has no rows, the windows closed by the last one never come.
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
