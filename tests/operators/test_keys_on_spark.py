"""A slice of the key matrix on Spark: every type of key through whole runs that are rescaled in every epoch.

Spark's own batch over the same files is the oracle. Each type has a key column, in which one type at a time
varies; files keep the bits of NaNs and times that Python cannot hold.
"""

import datetime as dt
import zlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

import penstock as ps
from operators.key_types import KEY_TYPES, SINGLE, canonical, packed
from penstock.routing.spark_hash import spark_hash
from rescales import AtRandom
from sessions import interpreting

SEED = zlib.crc32(b"keys on Spark")
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
EPOCHS, ROWS = 2, 40
KEYS = [f"k{place}" for place in range(len(SINGLE))]


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark):
    with interpreting(spark):
        yield


def test_every_type_has_the_hash_that_spark_gives_it(spark):
    longest = max(len(kind.values[0]) for kind in KEY_TYPES.values())
    columns, asked = {}, {}
    for name, kind in KEY_TYPES.items():
        own = [f"{name} {place}" for place in range(len(kind.values))]
        padded = [pa.concat_arrays([each, pa.nulls(longest - len(each), each.type)]) for each in kind.values]
        columns |= dict(zip(own, padded, strict=True))
        asked[name] = own
    frame = spark.createDataFrame(pa.table(columns))
    hashes = [F.xxhash64(*(f"`{each}`" for each in own)).alias(name) for name, own in asked.items()]
    found = frame.select(*hashes).toArrow()
    for name, own in asked.items():
        ours = spark_hash([columns[each] for each in own], longest).view(np.int64).tolist()
        assert ours == found[name].to_pylist(), name


def written(folder, *, constant, rng):
    """A file for each epoch; times ascend over the epochs and are distinct."""
    folder.mkdir()
    kind, places = packed(rng, constant=constant)
    serial = 0
    for epoch in range(EPOCHS):
        chosen = rng.choice(np.concatenate(places), ROWS)
        seconds = rng.permutation(np.arange(60 * epoch, 60 * epoch + 60))[:ROWS]
        times = pa.array(
            [START + dt.timedelta(seconds=int(each)) for each in seconds], pa.timestamp("us", "UTC")
        )
        keys = [values.take(pa.array(chosen)) for values in kind.values]
        numbers = pa.array(np.arange(serial, serial + ROWS))
        pq.write_table(
            pa.table([times, *keys, numbers], names=["time", *KEYS, "v"]), folder / f"{epoch}.parquet"
        )
        serial += ROWS
    return kind


def streamed(name, folder, kind):
    columns = ", ".join(f"{key} {sql}" for key, sql in zip(KEYS, kind.sql, strict=True))
    source = ps.files(folder, files_per_epoch=1)
    return ps.stream(name, f"time timestamp, {columns}, v bigint", "time", source=source)


def counted(table, *columns):
    """Rows as a multiset: the canonical key, then these columns; times in microseconds."""
    own = [
        each.cast(pa.int64()) if pa.types.is_timestamp(each.type) else each
        for each in map(table.column, columns)
    ]
    return Counter(
        zip(canonical([table[name] for name in KEYS]), *(each.to_pylist() for each in own), strict=True)
    )


def test_every_type_gives_what_a_batch_gives(spark, tmp_path):
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")  # noqa: T201 -- a failure shows it
    kind = written(tmp_path / "a", constant=False, rng=rng)
    events = streamed("a", tmp_path / "a", kind)
    for side in "lr":
        written(tmp_path / side, constant=True, rng=np.random.default_rng(SEED))
    left, right = (streamed(side, tmp_path / side, kind).select(*KEYS, **{f"{side}v": "v"}) for side in "lr")
    outputs = {
        "windows": events.group_by(*KEYS).window("30 seconds").agg(n=ps.count(), total=ps.sum("v")),
        "sessions": events.group_by(*KEYS).session("10 seconds").agg(n=ps.count(), total=ps.sum("v")),
        "deduplicate": events.deduplicate(*KEYS, within="1 day"),
        "join": left.join(right, KEYS, within="9 seconds", how="full", suffixes=("", "_2")),
    }
    sinks = {name: ps.memory() for name in outputs}
    run = ps.outputs(*outputs.values()).start(
        *sinks.values(), session=spark, channels=3, policy=AtRandom(SEED, every=1, most=8)
    )
    run.wait()
    assert run.counts.late == run.counts.rejected == 0
    assert run.decisions
    for name in "alr":
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(f"batch_{name}")
    keys = ", ".join(KEYS)
    values = "count(*) AS n, sum(v) AS total"
    paired = " AND ".join(f"l.{key} = r.{key}" for key in KEYS)
    either = ", ".join(f"coalesce(l.{key}, r.{key}) AS {key}" for key in KEYS)
    batch = {
        "windows": f"SELECT window.start AS window_start, {keys}, {values} FROM batch_a "
        f"GROUP BY window(time, '30 seconds'), {keys}",
        "sessions": f"SELECT {keys}, {values} FROM batch_a "
        f"GROUP BY session_window(time, '10 seconds'), {keys}",
        "deduplicate": f"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY time) AS n "
        "FROM batch_a) WHERE n = 1",
        "join": f"SELECT {either}, l.v AS lv, r.v AS rv FROM batch_l AS l FULL JOIN batch_r AS r ON {paired} "
        "AND abs(timestampdiff(SECOND, l.time, r.time)) <= 9",
    }
    told = {
        "windows": ("window_start", "n", "total"),
        "sessions": ("n", "total"),
        "deduplicate": ("time", "v"),
        "join": ("lv", "rv"),
    }
    for name, sql in batch.items():
        expected = counted(spark.sql(sql).toArrow(), *told[name])
        assert counted(sinks[name].table(), *told[name]) == expected, name
        assert len(expected) > ROWS // 2
