import json
import math

import numpy as np
import pytest

from penstock_lab.reports.report import Check, Difference, Machine, Report

MACHINE = Machine(cores=2, cpu="a processor", memory=1024, python="3.11.7", spark="4.3.0")


def report(*checks):
    row = {"engine": "penstock", "case": "100 s by 1 s", "rows_per_s": 10, "cpu_s": 1.5, "wall_s": 1.0}
    return Report("windows", "0.1.0", "2024-01-01T00:00:00+00:00", MACHINE, 7, (row,), checks)


def test_json_has_the_documented_keys_in_order():
    told = json.loads(report(Check("ratio", 30, "a promise", floor=25)).to_json())
    assert list(told) == ["name", "version", "date", "machine", "seed", "rows", "checks"]
    assert list(told["machine"]) == ["cores", "cpu", "memory", "python", "spark"]
    assert told["rows"][0]["rows_per_s"] == 10
    assert told["checks"] == [{"name": "ratio", "value": 30, "floor": 25, "ok": True, "source": "a promise"}]


def test_a_ceiling_stands_in_place_of_the_floor():
    told = Check("p99", 2.0, "a bound", ceiling=1.5).as_dict()
    assert told == {"name": "p99", "value": 2.0, "ceiling": 1.5, "ok": False, "source": "a bound"}


@pytest.mark.parametrize(("value", "ok"), [(25, True), (24.9, False), (None, False), (math.nan, False)])
def test_a_floor_holds_from_its_value_on(value, ok):
    assert Check("ratio", value, "a promise", floor=25).ok is ok


def test_a_value_that_is_no_number_is_null_in_json():
    told = json.loads(report(Check("ratio", math.nan, "a promise", floor=25)).to_json())
    assert told["checks"][0]["value"] is None


@pytest.mark.parametrize("bounds", [{}, {"floor": 1, "ceiling": 2}])
def test_a_check_has_exactly_one_bound(bounds):
    with pytest.raises(ValueError, match="exactly one"):
        Check("ratio", 1, "a promise", **bounds)


def test_one_broken_check_breaks_the_status():
    good, bad = Check("a", 1, "x", floor=1), Check("b", 2, "x", ceiling=1)
    assert report(good).status == 0
    assert report(good, bad).status == 1


def test_a_value_of_numpy_is_a_number_like_any_other():
    check = Check("ratio", np.float64(2.5), source="here", floor=2)
    assert json.dumps(check.as_dict()) == json.dumps(
        {"name": "ratio", "value": 2.5, "floor": 2, "ok": True, "source": "here"}
    )


def test_a_check_that_is_not_judged_is_null_in_json_with_the_reason():
    check = Check("ratio", 11.0, source="a promise", floor=25, unjudged="one small epoch")
    assert check.as_dict() == {
        "name": "ratio",
        "value": 11.0,
        "floor": 25,
        "ok": None,
        "source": "a promise",
        "unjudged": "one small epoch",
    }


@pytest.mark.parametrize("value", [11.0, 30.0])
def test_a_check_that_is_not_judged_does_not_decide_the_status(value):
    unjudged = Check("ratio", value, source="a promise", floor=25, unjudged="one small epoch")
    assert report(unjudged).status == 0
    assert report(unjudged, Check("b", 2, "x", ceiling=1)).status == 1


def test_without_a_value_even_a_check_that_is_not_judged_fails():
    check = Check("ratio", None, source="a promise", floor=25, unjudged="one small epoch")
    assert check.ok is False
    assert report(check).status == 1


COPIES = Difference("the paper counts each copy", 10, 12)


@pytest.mark.parametrize(
    ("value", "ok", "verdict"),
    [(30, True, "ok"), (25, True, "ok"), (12, None, "differs"), (10, None, "differs"), (9.9, False, "FAILED"),
     (12.1, False, "FAILED"), (None, False, "FAILED"), (math.nan, False, "FAILED")],
)  # fmt: skip
def test_a_reason_excuses_only_the_values_that_it_explains(value, ok, verdict):
    check = Check("ratio", value, "a paper", floor=25, differs=COPIES)
    assert check.ok is ok
    assert check.verdict == verdict
    assert report(check).status == (1 if ok is False else 0)


def test_a_difference_stands_in_json_with_the_reason_and_only_while_it_lasts():
    told = Check("ratio", 11.0, "a paper", floor=25, differs=COPIES).as_dict()
    assert told == {
        "name": "ratio",
        "value": 11.0,
        "floor": 25,
        "ok": None,
        "source": "a paper",
        "differs": "the paper counts each copy",
    }
    assert "differs" not in Check("ratio", 26.0, "a paper", floor=25, differs=COPIES).as_dict()
