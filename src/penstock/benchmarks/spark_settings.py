"""The settings of the session under which Spark's own operators are measured."""

from penstock.reports.machine import cores

__all__ = ["stock_settings", "tuned_settings"]

_STOCK_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
}


def stock_settings() -> dict[str, str]:
    """The same with the checkpoint writer that Spark comes with."""
    return {**tuned_settings(), **_STOCK_CHECKPOINTS}


def tuned_settings() -> dict[str, str]:
    """What a Spark user with this machine would set, with the checkpoint writer of Penstock's session."""
    # A state partition a core rather than the 200 of the default. The HDFS-backed store keeps its state in
    # memory, which is the faster one at this size: by five times for the join, measured once with RocksDB.
    package = "org.apache.spark.sql.execution.streaming.state"
    return {
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.streaming.stateStore.providerClass": f"{package}.HDFSBackedStateStoreProvider",
        "spark.sql.streaming.statefulOperator.allowMultiple": "true",
        # Spark's default: without the epoch that has no rows, the windows closed by the last one never come.
        "spark.sql.streaming.noDataMicroBatches.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
