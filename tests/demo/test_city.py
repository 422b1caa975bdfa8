from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.demo.city import DAWN, DELAY_SECONDS, SCHEMA, City, activity, incidents, rush


@pytest.fixture(scope="module")
def city():
    return City(seed=7, vehicles=20_000)


@pytest.fixture(scope="module")
def rush_hour(city):
    return city.reports(120)


def seconds_before_minute(table, minute):
    start = DAWN + timedelta(minutes=minute)
    return (int(start.timestamp() * 1e6) - table["time"].cast(pa.int64()).drop_null().to_numpy()) / 1e6


def test_same_arguments_give_the_same_reports(rush_hour):
    assert City(seed=7, vehicles=20_000).reports(120).equals(rush_hour)


def test_a_minute_does_not_depend_on_the_minutes_asked_before(rush_hour):
    city = City(seed=7, vehicles=20_000)
    city.reports(3)
    assert city.reports(120).equals(rush_hour)


def test_another_seed_gives_another_city(rush_hour):
    assert not City(seed=8, vehicles=20_000).reports(120).equals(rush_hour)


def test_the_schema_is_that_of_the_stream(rush_hour):
    assert rush_hour.schema.equals(SCHEMA)


def test_no_report_comes_from_the_future(rush_hour):
    assert seconds_before_minute(rush_hour, 121).min() > 0


def test_no_report_is_older_than_the_city(city):
    assert seconds_before_minute(city.reports(0), 0).max() <= 0


def test_nearly_all_reports_keep_the_delay(rush_hour):
    on_time = seconds_before_minute(rush_hour, 120) <= DELAY_SECONDS
    assert 0.998 < on_time.mean() < 1


def test_late_reports_are_late_by_minutes(rush_hour):
    behind = seconds_before_minute(rush_hour, 120)
    late = behind[behind > DELAY_SECONDS]
    assert len(late) > 0
    assert late.min() > 60
    assert late.max() <= 600


def test_reports_arrive_out_of_order(rush_hour):
    time = rush_hour["time"].cast(pa.int64()).drop_null().to_numpy()
    assert (np.diff(time) < 0).mean() > 0.1


def test_a_few_reports_have_no_time():
    lost = City(seed=7, vehicles=200_000).reports(120)["time"].null_count
    assert 1 <= lost <= 60


def test_most_reports_are_of_traffic(rush_hour):
    kinds = {each["values"]: each["counts"] for each in rush_hour["kind"].value_counts().to_pylist()}
    assert set(kinds) == {"traffic", "ping", "fuel"}
    assert kinds["traffic"] > 0.8 * rush_hour.num_rows


def test_the_rush_hour_is_busier_than_the_night(city, rush_hour):
    assert rush_hour.num_rows > 4 * city.reports(20 * 60).num_rows


def test_the_busiest_tenth_of_the_tiles_holds_most_reports(rush_hour):
    tile = np.floor(rush_hour["lon"].to_numpy() * 150) * 10_000 + np.floor(rush_hour["lat"].to_numpy() * 220)
    counts = np.sort(np.unique(tile, return_counts=True)[1])[::-1]
    assert counts[: len(counts) // 10].sum() > 0.5 * counts.sum()


def test_an_incident_draws_slow_reports(city):
    minute = next(m for m in range(60) if incidents(7, city._layout, m))
    slow = pc.sum(pc.less_equal(city.reports(minute)["speed"], 12.0)).as_py()
    quiet = next(m for m in range(600) if not incidents(7, city._layout, m))
    assert slow > 5 * pc.sum(pc.less_equal(city.reports(quiet)["speed"], 12.0)).as_py()


def test_incidents_begin_and_end(city):
    seen = {each for minute in range(240) for each in incidents(7, city._layout, minute)}
    assert all(10 <= each.end - each.start <= 25 for each in seen)
    for each in seen:
        assert each not in incidents(7, city._layout, each.end)


@pytest.mark.parametrize("wrong", [{"vehicles": 0}, {"seed": -1}, {"start": datetime(2024, 5, 14)}])  # noqa: DTZ001
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(ValueError, match="give a seed of 0 or more"):
        City(**{"seed": 7, "vehicles": 10} | wrong)


def test_a_minute_before_the_start_is_refused(city):
    with pytest.raises(ValueError, match="Minute -1 lies before the start"):
        city.reports(-1)


@pytest.mark.parametrize("peak", [8 * 60, 17 * 60 + 30])
def test_a_rush_hour_is_full_at_its_peak(peak):
    assert rush(peak) == 1.0


def test_midnight_has_no_seam():
    assert activity(0) == pytest.approx(activity(24 * 60 - 1), rel=0.01)


def test_the_night_is_quiet():
    assert activity(3 * 60) < 0.2 * activity(8 * 60)
