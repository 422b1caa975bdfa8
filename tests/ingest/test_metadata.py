import pytest

from penstock.errors import BadMetadata
from penstock.ingest.wire.metadata import Metadata

WRONG = [
    {"max_rate": -1},
    {"max_rate": "fast"},
    {"max_rate": True},
    {"expected_rate": float("nan")},
    {"min_rate": 5, "expected_rate": 4},
    {"max_rate": 5, "burst_peak": 4},
    {"transition": "leap"},
    {"burst_share": 1.5},
    {"period": 0},
    {"period": 10, "low_period": 6, "high_period": 5},
    {"speed": 3},
]


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_what_cannot_be_is_refused_by_name(given):
    with pytest.raises(BadMetadata, match=r"give|are:"):
        Metadata.of(given)


def test_all_characteristics_go_there_and_back():
    given = {
        "max_rate": 200,
        "min_rate": 10,
        "expected_rate": 50.5,
        "period": 86_400,
        "low_period": 28_800,
        "high_period": 14_400,
        "transition": "trend",
        "burst_share": 0.05,
        "burst_peak": 900,
    }
    assert Metadata.of(given).given() == given
    assert Metadata.of({}).given() == {}


def test_a_near_miss_is_named():
    with pytest.raises(BadMetadata, match="did you mean 'max_rate'"):
        Metadata.of({"maxrate": 3})
