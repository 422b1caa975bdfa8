import pyarrow as pa
import pytest

from penstock.errors import BadSchema
from penstock.expressions import types

ATOMIC = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(12,3)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]
NESTED = ["array<int>", "map<string,double>", "struct<a:int,b:array<string>>"]
# A word of SQL, a space, a quote and a bracket; the field behind each has to stay.
ODD = [
    "struct<a:int,select:int,order:string,from:decimal(3,1),b:int>",
    "array<struct<`odd name`:int,b:map<string,struct<`1`:int,c:int>>>>",
    "struct<`a``b`:int,`x,y`:int,`p<q>`:array<int>,`c:d`:int,b:int>",
]


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("LONG", "bigint"),
        ("integer", "int"),
        ("short", "smallint"),
        ("byte", "tinyint"),
        ("real", "float"),
        ("numeric", "decimal(10,0)"),
        ("dec(5)", "decimal(5,0)"),
        ("varchar(20)", "string"),
        ("char(2)", "string"),
        ("timestamp_ltz", "timestamp"),
        ("struct<a: long>", "struct<a:bigint>"),
        ("STRUCT < a long , select : int NOT NULL, b int >", "struct<a:bigint,select:int,b:int>"),
        (
            "struct<odd name:int,a-b:array<struct<x y:int>>>",
            "struct<`odd name`:int,`a-b`:array<struct<`x y`:int>>>",
        ),
    ],
)
def test_aliases(alias, name):
    assert types.normalise(alias) == name


@pytest.mark.parametrize("name", ATOMIC + NESTED + ODD)
def test_normalised_names_stay(name):
    assert types.normalise(name) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "strng",
        "int x",
        "int not null",
        "decimal(39,0)",
        "decimal(3,4)",
        "variant",
        "struct<a,b:int>",
        "struct<>",
    ],
)
def test_refuses(text):
    with pytest.raises(BadSchema):
        types.normalise(text)


@pytest.mark.parametrize("name", ATOMIC + NESTED + ODD)
def test_arrow_and_back(name):
    assert types.from_arrow(types.arrow_type(name)) == name


def test_a_timestamp_is_utc_in_arrow():
    assert types.arrow_type("timestamp") == pa.timestamp("us", tz="UTC")
    assert types.arrow_type("timestamp_ntz") == pa.timestamp("us")


def test_a_dictionary_has_the_type_of_its_values():
    assert types.from_arrow(pa.dictionary(pa.int32(), pa.string())) == "string"


def test_an_arrow_type_without_sql_type():
    with pytest.raises(BadSchema, match="uint64"):
        types.from_arrow(pa.uint64())


def test_predicates():
    assert types.is_numeric("decimal(3,1)")
    assert not types.is_integer("double")
    assert not types.is_orderable("array<int>")
    assert types.is_timestamp("timestamp_ntz")
