import pytest

from penstock_lab.reproduce.partitioning_growth import CONSTRUCTORS
from penstock_lab.reproduce.partitioning_settings import Setting, run_setting, twice_error


def test_the_printed_readj_moves_as_much_as_published_and_more_than_redist():
    found = run_setting(Setting("LLL"), ("redist", "readj"), range(7000, 7005))
    assert found["readj"].m == pytest.approx(1.34, abs=twice_error(0.11, runs=5))
    assert found["readj"].m > found["redist"].m
    assert found["readj"].b < found["redist"].b


def test_the_experiments_have_the_printed_search_and_our_own():
    assert CONSTRUCTORS["readj"].__module__ == "penstock_lab.algorithms.printed_readj"
    assert CONSTRUCTORS["readjust"].__module__ == "penstock.routing.readjust"
