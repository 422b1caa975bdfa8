import pytest

import penstock as ps
from penstock.errors import BadDuration, BadName, BadProcess, BadSchema
from processes import Sessions, visit_session

PAGES = ps.stream("pages", "time timestamp, user string, url string, ms int", time="time")
STATE = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}


def test_a_result_has_its_time_the_keys_and_what_is_declared():
    made = PAGES.group_by("user", site="lower(url)").process(visit_session, **STATE)
    assert made.schema.names == ("time", "user", "site", "n", "total")
    assert made.select("n").schema.names == ("time", "n")
    assert made.time == "time"


def test_the_same_function_makes_the_same_relation():
    function = Sessions()
    one, other = (PAGES.group_by("user").process(function, **STATE) for _ in range(2))
    assert one == other
    assert one != PAGES.group_by("user").process(function, timeout="1 minute", **STATE)


def test_the_fingerprint_goes_by_name_and_columns():
    one, other = (PAGES.group_by("user").process(Sessions(), **STATE) for _ in range(2))
    assert one.fingerprint() == other.fingerprint()
    assert one.where("n > 3").fingerprint() == other.fingerprint()
    for changed in ({"timeout": "1 s"}, {"order": "arrival"}, {"state": "n bigint, total bigint, x int"}):
        different = PAGES.group_by("user").process(Sessions(), **(STATE | changed))
        assert different.fingerprint() != one.fingerprint()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"function": Sessions}, BadProcess, r"got the class Sessions; give an instance, Sessions\(\)"),
        ({"function": 3}, BadProcess, "got 3; give a ps.Processor, or a function"),
        ({"order": "sorted"}, BadProcess, "order='sorted'; give 'event'"),
        ({"timeout": "0 s"}, BadProcess, "timeout='0 s'; give more than 0"),
        ({"timeout": "1 month"}, BadDuration, "no fixed length"),
        ({"result": "user string"}, BadName, "two columns would have the name 'user'"),
        ({"result": "time timestamp"}, BadName, "two columns would have the name 'time'"),
        ({"state": {"_ps_n": "int"}}, BadSchema, "reserved"),
        ({"state": {"n": "number of clicks"}}, BadSchema, "number of clicks"),
    ],
)
def test_what_is_wrong_is_said_while_writing(options, error, message):
    with pytest.raises(error, match=message):
        PAGES.group_by("user").process(**({"function": visit_session} | STATE | options))
