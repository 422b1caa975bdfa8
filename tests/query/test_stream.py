import pytest

import penstock.query as ps
from penstock.errors import BadDuration, BadExpression, BadName, BadSource, UnknownColumn, WrongType

COLUMNS = (
    "Time timestamp, vehicle string, lon double, lat double, speed double, kind string, items array<int>"
)


@pytest.fixture
def reports():
    return ps.stream("reports", COLUMNS, time="time", delay="5 seconds", idle="1 minute", key="VEHICLE")


def test_declaration(reports):
    assert (reports.time, reports.key, reports.delay, reports.idle) == (
        "Time",
        "vehicle",
        5_000_000,
        60_000_000,
    )


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"name": "a b"}, BadName, "identifier"),
        ({"time": "tme"}, UnknownColumn, "'Time'"),
        ({"time": "speed"}, WrongType, "timestamp_millis"),
        ({"delay": "-1 s"}, BadDuration, "negative"),
        ({"idle": "soon"}, BadDuration, "soon"),
        ({"key": "car"}, UnknownColumn, "'car'"),
        ({"source": "in/"}, BadSource, "ps.files"),
    ],
)
def test_refuses(change, error, reason):
    with pytest.raises(error, match=reason):
        ps.stream(**{"name": "s", "schema": COLUMNS, "time": "time", **change})


def test_where_keeps_the_schema(reports):
    slow = reports.where("speed < 3")
    assert slow.schema == reports.schema
    assert str(slow.operator) == "where(`speed` < 3)"


def test_steps_do_not_change_what_they_start_from(reports):
    first = reports.where("speed < 3")
    first.where("speed > 1")
    assert first.inputs == (reports,)


def test_select_makes_a_schema(reports):
    chosen = reports.select("SPEED", kmh="speed * 3.6")
    assert chosen.schema.names == ("speed", "kmh")
    assert chosen.schema.column("kmh").type == "double"


def test_select_hides_the_time_but_carries_it(reports):
    chosen = reports.select("speed")
    assert (chosen.time, chosen.time_type) == ("Time", "timestamp")
    with pytest.raises(UnknownColumn):
        chosen.where("time is null")


@pytest.mark.parametrize("name", ["Time", "time"])
def test_select_cannot_redefine_what_is_carried(reports, name):
    with pytest.raises(BadName, match="carried"):
        reports.select(**{name: "upper(kind)"})


@pytest.mark.parametrize("step", [lambda s: s.select("speed", Speed="lon"), lambda s: s.select(_ps_x="lon")])
def test_select_names_are_checked(reports, step):
    with pytest.raises(BadName):
        step(reports)


def test_select_and_group_by_need_something(reports):
    for call in (reports.select, reports.group_by):
        with pytest.raises(BadName, match="at least one"):
            call()


def test_where_needs_a_condition(reports):
    with pytest.raises(WrongType):
        reports.where("speed")
    with pytest.raises(BadExpression):
        reports.where("speed >")


def test_keys_have_to_be_plain(reports):
    with pytest.raises(WrongType, match="array<int>"):
        reports.group_by("items")


def test_group_by_goes_before_or_after_window(reports):
    assert reports.group_by("kind").window("1 minute") == reports.window("1 minute").group_by("kind")


def test_group_by_goes_once(reports):
    with pytest.raises(BadName, match="twice"):
        reports.group_by("kind").window("1 minute").group_by("vehicle")


def test_repr(reports):
    windowed = reports.where("speed > 0").group_by("kind").window("1 hour", slide="1 minute")
    assert repr(windowed) == "reports.where(`speed` > 0).group_by(kind).window(1 hour slide 1 minute)"
