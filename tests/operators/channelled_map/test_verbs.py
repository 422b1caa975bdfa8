import pytest

import penstock as ps
from penstock.errors import BadName, QueryError, UnknownColumn

ROWS = ps.stream("rows", "time timestamp, Code bigint, size int", time="time")


def same(batch):
    return batch


def test_a_map_is_a_stage_only_where_channels_are_asked_for():
    assert not ROWS.map(same, "size int").stateful
    assert not ROWS.map(same, "size int", by=[]).stateful
    assert ROWS.map(same, "size int", channels=True).stateful
    assert repr(ROWS.map(same, "size int", by=["code", "size"])) == "rows.map(same; by Code, size)"
    assert repr(ROWS.map(same, "size int", by="*")) == "rows.map(same; by *)"


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"by": "cod"}, UnknownColumn, "cod"),
        ({"by": 3}, BadName, "give the name of a column"),
        ({"by": ["code", "Code"]}, BadName, "names a column twice"),
        ({"channels": 4}, QueryError, r"give True or False, and their number with start\(channels=…\)"),
    ],
)
def test_what_cannot_be_is_refused(given, error, match):
    with pytest.raises(error, match=match):
        ROWS.map(same, "size int", **given)
