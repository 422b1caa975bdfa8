import pytest

import penstock.query as ps
from penstock.errors import BadExpression, BadName, UnknownColumn

REPORTS = ps.stream("reports", "time timestamp, vehicle string, speed double, kind string", time="time")
ALERTS = ps.stream("alerts", "at timestamp, car string, code int", time="at")


def sql(text):
    return ps.sql(text, REPORTS, ALERTS)


def test_a_case_with_its_outputs_in_order():
    found = sql("SPLIT reports CASE WHEN speed > 100 THEN fast WHEN speed < 5 THEN slow ELSE rest END")
    assert list(found) == ["fast", "slow", "rest"]
    assert tuple(found.values()) == REPORTS.split("speed > 100", "speed < 5")


def test_without_else_the_rest_has_no_name():
    found = sql("split reports case when speed > 100 then fast end")
    assert found == {"fast": REPORTS.split("speed > 100")[0]}


def test_a_case_of_one_value():
    found = sql("SPLIT reports CASE kind WHEN 'a' THEN first WHEN 'b' THEN second ELSE others END")
    assert tuple(found.values()) == REPORTS.split("kind = 'a'", "kind = 'b'")


@pytest.mark.parametrize(
    "text",
    [
        "SPLIT ({}) AS r CASE WHEN r.speed > 1 THEN x ELSE y END",
        "WITH r AS ({}) SPLIT r CASE WHEN speed > 1 THEN x ELSE y END",
    ],
)
def test_a_split_of_a_sub_query(text):
    relation = REPORTS.where("kind = 'a'").select("vehicle", "speed")
    inner = "SELECT vehicle, speed FROM reports WHERE kind = 'a'"
    assert tuple(sql(text.format(inner)).values()) == relation.split("speed > 1")


def test_a_column_and_a_table_may_be_called_split():
    odd = ps.stream("odd", "t timestamp, split int", time="t")
    text = "WITH split AS (SELECT split FROM odd) SELECT split FROM split"
    assert ps.sql(text, odd) == odd.select("split")


def test_a_split_of_some_tuples():
    found = sql("SPLIT reports WHERE kind = 'a' CASE WHEN speed > 1 THEN x END")
    assert found["x"] == REPORTS.where("kind = 'a'").split("speed > 1")[0]


def test_a_split_of_a_join():
    found = sql(
        "SPLIT reports r JOIN alerts a ON r.vehicle = a.car WITHIN 1 HOUR "
        "CASE WHEN r.time < a.at THEN before ELSE after END"
    )
    pairs = REPORTS.join(ALERTS, {"vehicle": "car"}, within="1 hour")
    assert [each.schema for each in found.values()] == [pairs.schema, pairs.schema]


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("SPLIT reports", BadExpression, "without a CASE; write SPLIT"),
        ("SPLIT reports CASE WHEN speed > 1 THEN 'fast' END", BadExpression, "cannot name an output"),
        ("SPLIT reports CASE WHEN speed > 1 THEN a WHEN speed > 0 THEN A END", BadName, "with OR"),
        ("SPLIT reports CASE WHEN speed > 1 THEN a END = 1", BadExpression, "ends with its CASE"),
        ("SPLIT reports CASE WHEN sped > 1 THEN a END", UnknownColumn, "speed"),
        ("SPLIT reports CASE WHEN max(speed) > 1 THEN a END", BadExpression, "aggregate"),
        ("SPLIT reports [RANGE 1 HOUR] CASE WHEN speed > 1 THEN a END", BadExpression, "sub-query"),
        ("SPLIT reports GROUP BY kind CASE WHEN speed > 1 THEN a END", BadExpression, "sub-query"),
    ],
)
def test_refuses(text, error, reason):
    with pytest.raises(error, match=reason):
        sql(text)


def test_errors_mark_the_place_in_the_text_as_written():
    with pytest.raises(BadExpression) as caught:
        sql("SPLIT reports CASE WHEN speed > ) THEN fast END")
    line, caret = str(caught.value).splitlines()[1:]
    assert line == "  SPLIT reports CASE WHEN speed > ) THEN fast END"
    assert line[caret.index("^")] == ")"
