import math

from hypothesis import given
from hypothesis import strategies as st

from penstock.demo.tiles import middle


def grid(lon, lat, metres):
    row = math.floor(lat * 111_320 / metres)
    return f"{row}:{math.floor(lon * 111_320 * math.cos(math.radians(row * metres / 111_320)) / metres)}"


@given(st.floats(-179, 179), st.floats(-80, 80), st.sampled_from([100, 500, 1000]))
def test_the_middle_of_a_tile_lies_in_it(lon, lat, metres):
    area = grid(lon, lat, metres)
    assert grid(*middle(area, metres), metres) == area
