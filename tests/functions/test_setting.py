"""The session's time zone and ANSI mode decide what an expression means, behind a stage as before it."""

import datetime as dt

import pytest

import penstock as ps
from penstock.compile import cut
from penstock.errors import BadJoin, ForeignCheckpoint, WrongType
from penstock.functions import SqlSetting
from penstock.query import Query

NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}
NO_ANSI = {"spark.sql.ansi.enabled": "false"}
ROWS = [
    {"time": dt.datetime(2024, 3, 10, hour, 30, tzinfo=dt.UTC), "k": "a", "n": 2**31 - 1, "d": 0.0}
    for hour in (5, 6, 7, 8)
]
SCHEMA = "time timestamp, k string, n int, d double"


def given(name="t"):
    return ps.stream(name, SCHEMA, "time", source=ps.rows([ROWS]))


def passed():
    """A window that passes every row."""
    return given().group_by("k").window("1 hour").agg(t=ps.first("time"), n=ps.first("n"), d=ps.first("d"))


@pytest.fixture
def session(spark, request):
    settings = request.param
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def collected(relation, spark):
    sink = ps.memory()
    relation.start(sink, session=spark).wait()
    return sink.table().sort_by("window_start").to_pylist()


ZONED = {
    "h": "hour(t)",
    "d": "cast(t as date)",
    "s": "cast(t as string)",
    "b": "t > timestamp'2024-03-10 02:00:00'",
    "c": "t > '2024-03-10 02:00:00'",
    "u": "timestampdiff(DAY, timestamp'2024-03-09 02:30:00', t)",
    "m": "date_trunc('day', t)",
    "x": "unix_seconds(t)",
}


@pytest.mark.parametrize("session", [NEW_YORK], indirect=True)
def test_the_time_zone_of_the_session_is_honoured_behind_a_window(session):
    found = collected(passed().select(**ZONED), session)
    values = ", ".join(f"timestamp_micros({int(row['time'].timestamp() * 10**6)})" for row in ROWS)
    frame = session.sql(f"SELECT explode(array({values})) AS t").selectExpr(
        *(f"{text} AS {name}" for name, text in ZONED.items())
    )
    theirs = frame.toArrow().sort_by("x").to_pylist()
    assert [{name: row[name] for name in ZONED} for row in found] == theirs
    # At two o'clock the clocks went forward.
    assert [row["h"] for row in found] == [0, 1, 3, 4]


@pytest.mark.parametrize("session", [NO_ANSI], indirect=True)
def test_without_ansi_mode_nothing_raises_behind_a_window(session):
    found = collected(passed().select(a="n + 1", b="n / d", c="cast(d / d as int)", e="n % 0"), session)
    assert [(row["a"], row["b"], row["c"], row["e"]) for row in found] == [(-(2**31), None, None, None)] * 4


@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        (SqlSetting(zone="America/New_York"), "hour(l.time) = hour(r.time)"),
        (SqlSetting(zone="America/New_York"), "l.time > timestamp'2024-01-01 00:00:00'"),
        (SqlSetting(ansi=False), "l.n + r.n > 0"),
    ],
)
def test_a_condition_that_a_session_gives_another_meaning_is_refused(setting, condition):
    joined = given("a").join(given("b"), "k", within="1 minute", condition=condition, suffixes=("_1", "_2"))
    assert cut(Query((joined,)))
    with pytest.raises(BadJoin, match=r"select\(\) before the join"):
        cut(Query((joined,)), setting=setting)


def test_sums_of_decimals_need_ansi_mode():
    relation = given().group_by("k").window("1 hour").agg(total=ps.sum("cast(n as decimal(10,2))"))
    assert cut(Query((relation,)))
    with pytest.raises(WrongType, match="without ANSI mode"):
        cut(Query((relation,)), setting=SqlSetting(ansi=False))


def test_a_time_zone_that_a_value_does_not_depend_on_keeps_its_step_in_the_channel():
    relation = passed().select(x="unix_micros(t)", n="n + 1")
    (feed,) = cut(Query((relation,)), setting=SqlSetting(zone="Asia/Kolkata")).outputs[0]
    assert feed.inside
    assert not feed.outside


def test_a_checkpoint_keeps_the_meaning_of_its_expressions(spark, tmp_path):
    passed().select(h="hour(t)").start(ps.memory(), checkpoint=tmp_path, session=spark).wait()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.raises(ForeignCheckpoint, match=r"set spark.sql.session.timeZone to UTC, or use a new"):
            passed().select(h="hour(t)").start(ps.memory(), checkpoint=tmp_path, session=spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_explain_says_which_steps_run_in_spark_and_why():
    told = passed().where("n > 1").select(e="exp(d)", n="n").explain()
    assert "to output 0 after where(`n` > 1) (DuckDB on Arrow, in the channel)" in told
    assert "(Spark SQL, because exp(double) has no certified translation)" in told
