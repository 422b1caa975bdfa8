import json

import penstock as ps
from penstock.compile import optimise
from penstock.query import Query
from processes import Sessions, visit_session

PAGES = ps.stream("pages", "time timestamp, user string, url string, ms int", time="time")
STATE = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}


def sessions(function=visit_session, **options):
    return PAGES.group_by("user").process(function, **(STATE | options))


def test_a_condition_on_keys_moves_below_a_process_and_others_stay():
    found = optimise(Query((sessions().where("user <> 'bot' AND n > 3"),)))
    assert repr(found.query) == (
        "pages.where(`user` <> 'bot').group_by(user).process(visit_session).where(`n` > 3)"
    )
    assert any("moved below" in note for note in found.notes)


def test_every_column_in_sight_goes_to_the_function():
    narrow = optimise(Query((sessions().select("n"),))).query
    assert narrow.outputs[0].inputs[0].operator.given.names == ("time", "user", "url", "ms")


def test_a_window_after_a_process_has_channels_of_its_own():
    windowed = sessions().group_by("user").window("1 hour").agg(n=ps.count())
    stages = json.loads(windowed.explain("json"))["stages"]
    assert [(each["kind"], each["beside"]) for each in stages] == [("process", None), ("aggregation", None)]


def test_the_plan_tells_how_the_function_is_called():
    text = sessions(Sessions(), timeout="30 minutes").explain()
    assert "Sessions over Arrow, called with the rows of many keys at once" in text
    assert "a key without a row for 30 minutes of event time is told so" in text
    plain = sessions(order="arrival").explain()
    assert "one Python call for each row" in plain
    assert "results depend on how epochs were cut" in plain
    assert 'stage0_op["group_by(user).process(visit_session)"]' in sessions().explain("mermaid")
