"""Spark's own way to more state partitions: stop the query, rewrite its checkpoint, start it again."""

import time
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark users know
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from penstock_lab.bench.keyed_payloads import DDL, KeyedPayloads
from penstock_lab.bench.live_rescale import AFTER, BEFORE, Rescaled
from penstock_lab.bench.results import states_kept
from penstock_lab.bench.session import settings, tuned_settings
from penstock_lab.bench.standstill import gaps, standstill

__all__ = ["repartition_offline"]

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def repartition_offline(spark: SparkSession, data: KeyedPayloads, files: list[Path], place: Path) -> Rescaled:
    """Run over the files up to the change, repartition the checkpoint, and run over the rest."""
    folder, checkpoint = place / "in", place / "state"
    folder.mkdir(parents=True)
    with settings(spark, _settings()):
        _offer(files[: data.before], folder)
        query = _start(spark, folder, checkpoint)
        query.processAllAvailable()
        earlier = _progress(query)
        _offer(files[data.before :], folder)
        held = _bytes(checkpoint / "state")
        stopped = time.time()
        query.stop()
        began = time.perf_counter()
        manager = spark._streamingCheckpointManager  # noqa: SLF001 -- Spark has no public name for it yet
        manager.repartition(str(checkpoint), AFTER)
        moved_s = time.perf_counter() - began
        moved = _bytes(checkpoint / "state") - held
        query = _start(spark, folder, checkpoint)
        query.processAllAvailable()
        later = [_end(each) for each in _progress(query)]
        query.stop()
        partitions = _export(spark, checkpoint, place / "kept")
    steady = gaps([_end(each) for each in earlier])[-data.steady :]
    return Rescaled(
        standstill=standstill(steady, [later[0] - stopped], gaps(later)),
        epochs=1,
        state_bytes=_kept_bytes(earlier[-1]),
        moved_bytes=max(0, moved),
        move_s=moved_s,
        channels=partitions,
        kept=states_kept(place / "kept" / "*.parquet"),
    )


def _settings() -> dict[str, str]:
    return {
        **tuned_settings(),
        # Offline repartitioning knows no other store.
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.shuffle.partitions": str(BEFORE),
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }


def _start(spark: SparkSession, folder: Path, checkpoint: Path) -> StreamingQuery:
    rows = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(folder))
    counted = rows.groupBy("key").agg(
        F.count("*").alias("n"), F.sum("value").alias("total"), F.max("payload").alias("payload")
    )
    writer = counted.writeStream.format("noop").outputMode("update")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _offer(files: list[Path], folder: Path) -> None:
    for file in files:
        (folder / file.name).hardlink_to(file)


def _progress(query: StreamingQuery) -> list[StreamingQueryProgress]:
    """The epochs that had rows, oldest first."""
    return [each for each in query.recentProgress if each.numInputRows]


def _end(progress: StreamingQueryProgress) -> float:
    """When an epoch was over, in seconds since 1970."""
    return datetime.fromisoformat(progress.timestamp).timestamp() + progress.batchDuration / 1000


def _kept_bytes(progress: StreamingQueryProgress) -> int:
    return int(progress.stateOperators[0].customMetrics["rocksdbSstFileSize"])


def _bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _export(spark: SparkSession, checkpoint: Path, target: Path) -> int:
    """Write the state as Parquet files; the number of partitions that it lies in."""
    state = spark.read.format("statestore").load(str(checkpoint))
    values = {"count": "n", "sum": "total", "max": "payload"}
    columns = [F.col(f"value.{name}").alias(ours) for name, ours in values.items()]
    state.select("key.key", *columns, "partition_id").write.parquet(str(target))
    return spark.read.parquet(str(target)).select("partition_id").distinct().count()
