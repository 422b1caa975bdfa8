import math

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadExpression
from penstock.expressions.scalar import scalar
from penstock.expressions.schema import Schema

SCHEMA = Schema.parse("lon double, lat double, edge int")


def test_grid_is_a_string_of_its_columns():
    tile = scalar("grid(lon, lat, 100)", SCHEMA)
    assert (tile.type, tile.nullable, set(tile.columns)) == ("string", True, {"lon", "lat"})


def run(sql, lon, lat):
    text = sql.replace("`", chr(34))
    with duckdb.connect() as connection:
        ((value,),) = connection.execute(
            f"select {text} from (select ?::double lon, ?::double lat)", [lon, lat]
        ).fetchall()
    return value


@settings(max_examples=50, deadline=None)
@given(st.floats(-180, 180), st.floats(-89, 89), st.sampled_from([50, 100, 1000]))
def test_grid_is_the_tile_that_holds_the_point(lon, lat, metres):
    row = math.floor(lat * 111320 / metres)
    column = math.floor(lon * 111320 * math.cos(math.radians(row * metres / 111320)) / metres)
    assert run(scalar(f"grid(lon, lat, {metres})", SCHEMA).sql, lon, lat) == f"{row}:{column}"


def test_grid_of_null_is_null():
    assert run(scalar("grid(lon, lat, 100)", SCHEMA).sql, None, 1.0) is None


def test_macros_nest_in_expressions():
    assert scalar("upper(grid(lon + 1, lat, edge))", SCHEMA).columns == ("lat", "edge", "lon")


@pytest.mark.parametrize(
    "text", ["grid(lon, lat)", "grid(lon, lat, 0)", "grid(lon, lat, -5)", "grid(lon, lat, 'x')"]
)
def test_refuses(text):
    with pytest.raises(BadExpression, match="grid"):
        scalar(text, SCHEMA)
