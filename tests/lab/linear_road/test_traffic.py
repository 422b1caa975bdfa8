import duckdb
import pytest

from penstock_lab.linear_road.traffic import DAYS, INPUT_NAMES, Traffic, read_trace

TRAFFIC = Traffic(expressways=2, seconds=600, begin=5400, accidents=60, most=200, seed=11)


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("given", TRAFFIC.reports)
        engine.register("history", TRAFFIC.history)
        engine.execute("CREATE TABLE input AS SELECT *, epoch(time)::BIGINT AS t FROM given")
        yield engine


def only(engine, text):
    ((found,),) = engine.execute(text).fetchall()
    return found


def test_a_seed_gives_the_same_traffic_and_another_one_another():
    small = {"seconds": 60, "begin": 600}
    assert Traffic(**small).reports.equals(Traffic(**small).reports)
    assert not Traffic(**small).reports.equals(Traffic(**small, seed=8).reports)


def test_rows_come_in_the_order_of_time_and_in_the_time_asked_for(engine):
    bounds = engine.execute("SELECT min(t) % 86400, max(t) % 86400 FROM input").fetchall()
    assert bounds == [(5400, 5999)]
    assert only(
        engine, "SELECT bool_and(t >= p) FROM (SELECT t, lag(t) OVER (ORDER BY rowid) AS p FROM input)"
    )


def test_the_rate_grows_over_the_run():
    traffic = Traffic(seconds=1200, run=1200, least=10, most=100)
    with duckdb.connect() as engine:
        engine.register("input", traffic.reports)
        rows = "SELECT count(*) / 300 FROM input WHERE type = 0 AND epoch(time) % 1200"
        first, last = only(engine, f"{rows} < 300"), only(engine, f"{rows} >= 900")
    # Places stay empty for an interval between two cars, so a few reports are missing.
    assert 0.8 * 21 < first < 21
    assert 0.8 * 89 < last < 89


def test_a_car_reports_every_thirty_seconds_of_a_trip(engine):
    gaps = """SELECT DISTINCT t - lag(t) OVER (PARTITION BY vid ORDER BY t) AS gap FROM input WHERE type = 0
              QUALIFY gap IS NOT NULL AND lag(lane) OVER (PARTITION BY vid ORDER BY t) <> 4"""
    assert engine.execute(gaps).fetchall() == [(30,)]


def test_a_car_moves_along_its_direction_as_fast_as_it_says(engine):
    wrong = """SELECT count(*) FROM (
                   SELECT (1 - 2 * dir) * (pos - lag(pos) OVER trip) AS feet, speed, lane,
                          lag(lane) OVER trip AS before
                   FROM input WHERE type = 0 WINDOW trip AS (PARTITION BY vid ORDER BY t))
               WHERE before <> 4 AND lane <> 4 AND speed > 0 AND abs(feet - 44 * speed) > 1"""
    assert only(engine, wrong) == 0


def test_positions_lie_in_their_segments(engine):
    assert only(
        engine, "SELECT bool_and(seg = pos // 5280 AND seg BETWEEN 0 AND 99) FROM input WHERE type = 0"
    )
    assert only(engine, "SELECT count(DISTINCT (xway, dir)) FROM input WHERE type = 0") == 4


def test_accidents_are_two_cars_that_stand_at_one_place(engine):
    places = """SELECT xway, dir, lane, pos FROM (
                    SELECT xway, dir, lane, pos, vid FROM input WHERE type = 0 AND speed = 0
                    GROUP BY ALL HAVING count(*) >= 4)
                GROUP BY ALL HAVING count(*) = 2"""
    # 9 are expected at the begin and 20 after it, the last of which have not stood for long enough.
    assert 15 <= only(engine, f"SELECT count(*) FROM ({places})") <= 45


def test_some_reports_are_followed_by_queries(engine):
    reports = only(engine, "SELECT count(*) FROM input WHERE type = 0")
    balances = only(engine, "SELECT count(*) FROM input WHERE type = 2")
    expenditures = only(engine, "SELECT count(*) FROM input WHERE type = 3")
    assert abs(balances / reports - 0.005) < 0.001
    assert abs(expenditures / reports - 0.001) < 0.0005
    assert only(engine, "SELECT count(*) - count(DISTINCT qid) FROM input WHERE type <> 0") == 0


def test_the_history_has_one_expressway_a_day_for_cars_that_ask(engine):
    assert only(engine, "SELECT bool_and(n = 1) FROM (SELECT count(*) AS n FROM history GROUP BY vid, day)")
    assert engine.execute("SELECT min(day), max(day) FROM history").fetchall() == [(1, DAYS)]
    strangers = "SELECT count(*) FROM history WHERE vid NOT IN (SELECT vid FROM input WHERE type = 3)"
    assert only(engine, strangers) == 0


def test_a_part_of_a_minute_is_refused_as_a_begin():
    with pytest.raises(ValueError, match="begin is 90"):
        Traffic(begin=90)


def test_a_trace_of_the_benchmark_is_read_without_travel_times(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "type,time,vid,speed,xway,lane,dir,seg,pos,qid,sinit,send,dow,tod,day\n"
        "0,138,1680,25,0,0,0,44,232744,-1,-1,-1,-1,-1,-1\n"
        "4,139,1680,-1,0,-1,-1,-1,-1,7,10,20,3,40,-1\n"
        "3,140,1680,-1,0,-1,-1,-1,-1,8,-1,-1,-1,-1,12\n"
    )
    found = read_trace(trace)
    assert tuple(found.column_names) == INPUT_NAMES
    assert found.select(["type", "vid", "qid", "day"]).to_pydict() == {
        "type": [0, 3],
        "vid": [1680, 1680],
        "qid": [-1, 8],
        "day": [-1, 12],
    }
    assert found["time"].to_pylist()[1].minute == 2
