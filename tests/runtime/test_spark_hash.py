import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import BadRouting
from penstock.routing.spark_hash import spark_hash

OLDEST = dt.datetime(1700, 1, 1)  # noqa: DTZ001 -- what hypothesis wants
KINDS = {
    "boolean": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "smallint": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32) | st.just(-0.0)),
    "double": (pa.float64(), st.floats() | st.just(-0.0)),
    "string": (pa.string(), st.text(max_size=80)),
    "binary": (pa.binary(), st.binary(max_size=80)),
    "date": (pa.date32(), st.dates(OLDEST.date())),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        st.datetimes(OLDEST, timezones=st.just(dt.UTC)),
    ),
    "timestamp_ntz": (pa.timestamp("us"), st.datetimes(OLDEST)),
    "decimal(9,2)": (pa.decimal128(9, 2), st.decimals(-9999999, 9999999, places=2)),
    "decimal(18,0)": (pa.decimal128(18, 0), st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal)),
    "decimal(38,4)": (pa.decimal128(38, 4), st.decimals(-(10**23), 10**23, places=4)),
    "array<int>": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(-5, 5), max_size=4)),
    "array<array<string>>": (
        pa.list_(pa.list_(pa.string())),
        st.lists(st.none() | st.lists(st.none() | st.text(max_size=3), max_size=2), max_size=3),
    ),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]),
        st.fixed_dictionaries(
            {"a": st.none() | st.integers(0, 9), "b": st.none() | st.lists(st.floats(), max_size=2)}
        ),
    ),
}


def by_spark(spark, table):
    hashed = spark.createDataFrame(table).select(F.xxhash64(*table.column_names).alias("hash"))
    return hashed.toArrow()["hash"].to_numpy().view(np.uint64)


@settings(max_examples=8)
@given(
    st.fixed_dictionaries({name: st.lists(st.none() | kind[1], min_size=40) for name, kind in KINDS.items()})
)
def test_hashes_every_type_as_spark_does(spark, drawn):
    columns = {name: pa.array(drawn[name][:40], kind[0]) for name, kind in KINDS.items()}
    frame = spark.createDataFrame(pa.table(columns))
    hashed = frame.select(*(F.xxhash64(f"`{name}`").alias(name) for name in KINDS)).toArrow()
    for name, column in columns.items():
        assert spark_hash([column], 40).view(np.int64).tolist() == hashed[name].to_pylist(), name


def test_columns_chain_chunks_and_slices_count(spark):
    words = ["", None, "x" * 31, "y" * 32, "z" * 100] * 20
    one = pa.table({"a": words, "b": range(100), "c": [None, 1.5, -0.0, 0.0] * 25})
    table = pa.concat_tables([one.slice(3, 50), one, one.slice(97)])
    assert spark_hash(table.columns, table.num_rows).tolist() == by_spark(spark, table).tolist()
    encoded = [table["a"].dictionary_encode(), *table.columns[1:]]
    assert spark_hash(encoded, table.num_rows).tolist() == by_spark(spark, table).tolist()


def test_parts_of_nested_columns_count(spark):
    pairs = pa.array(
        [[("a", 1)], None, [], [("b", None), ("c", 3)], [("", 0)]] * 8, pa.map_(pa.string(), pa.int64())
    )
    one = pa.table(
        {
            "a": pa.array([[1, None], None, [], [3], [4, 5, 6]] * 8),
            "s": pa.array([{"x": 1, "y": "z"}, None, {"x": None, "y": ""}, {"x": 2, "y": None}] * 10),
        }
    )
    table = pa.concat_tables([one.slice(3, 30), one, one.slice(37)])
    assert spark_hash(table.columns, table.num_rows).tolist() == by_spark(spark, table).tolist()
    # Spark hashes no maps unless it is told to: a map is the array of its pairs.
    entries = pa.struct([("key", pa.string()), ("value", pa.int64())])
    listed = pa.array(
        [
            None if each is None else [{"key": key, "value": value} for key, value in each]
            for each in pairs.to_pylist()
        ],
        pa.list_(entries),
    )
    expected = by_spark(spark, pa.table({"m": listed}))
    assert spark_hash([pairs], 40).tolist() == expected.tolist()
    assert spark_hash([pairs.slice(3, 20)], 20).tolist() == expected[3:23].tolist()


def test_no_rows_no_columns_and_unknown_types():
    assert spark_hash([pa.array([], pa.string())], 0).tolist() == []
    assert spark_hash([], 2).tolist() == [42, 42]
    assert spark_hash([pa.nulls(2)], 2).tolist() == [42, 42]
    with pytest.raises(BadRouting, match="type month_day_nano_interval has no hash"):
        spark_hash([pa.array([(1, 2, 3)], pa.month_day_nano_interval())], 1)
