"""How every query of Structured Streaming ends: snappy parquet, everything that is there, then no more."""

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["drain", "start"]


def drain(result: DataFrame, output: Path, checkpoint: Path) -> None:
    """Run a query until the last epoch of its input is committed."""
    start(result, output, checkpoint).awaitTermination()


def start(result: DataFrame, output: Path, checkpoint: Path) -> StreamingQuery:
    """The same, without waiting for it."""
    return (
        result.writeStream.format("parquet")
        .option("path", str(output))
        .option("checkpointLocation", str(checkpoint))
        .option("compression", "snappy")
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
