import pyarrow as pa
import pytest

from penstock.errors import BadSchema, UnknownColumn
from penstock.expressions.schema import Column, Schema, schema_of


def test_parse():
    schema = Schema.parse("time timestamp not null, v long, `odd name` struct<a:int>")
    assert schema.columns == (
        Column("time", "timestamp", nullable=False),
        Column("v", "bigint"),
        Column("odd name", "struct<a:int>"),
    )


def test_names_resolve_without_regard_to_case_and_keep_their_spelling():
    schema = Schema.parse("Speed double")
    assert schema.column("sPEED").name == "Speed"
    assert "SPEED" in schema


def test_an_unknown_column_gets_a_suggestion():
    with pytest.raises(UnknownColumn, match=r"'sped'; did you mean 'speed'\? The columns are: time, speed"):
        Schema.parse("time timestamp, speed double").column("sped")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("a int, A int", "two columns have the name"),
        ("_ps_x int", "reserved"),
        ("a", "its name and its type"),
        ("a int default 3", "only NOT NULL"),
        ("a int) using delta", "cannot read"),
        ("a int; drop table b", "cannot read"),
        ("a strng", "cannot read|type"),
    ],
)
def test_refuses(text, reason):
    with pytest.raises(BadSchema, match=reason):
        Schema.parse(text)


def test_ddl_is_read_back():
    schema = Schema.parse("time timestamp not null, `a``b` int, n map<string,array<int>>")
    assert Schema.parse(schema.ddl()) == schema


def test_an_unknown_type_has_no_ddl():
    with pytest.raises(BadSchema, match="'x' is not known"):
        Schema((Column("x", None),)).ddl()


def test_from_arrow_and_back():
    arrow = pa.schema([pa.field("t", pa.timestamp("us", tz="UTC"), nullable=False), ("v", pa.float64())])
    assert schema_of(arrow).arrow() == arrow


def test_something_else_is_no_schema():
    with pytest.raises(BadSchema, match="dict"):
        schema_of({"a": "int"})
