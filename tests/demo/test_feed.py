import time

import pyarrow.parquet as pq
import pytest

from penstock.demo.city import City
from penstock.demo.feed import CityFeed, minute_file


@pytest.fixture
def city():
    return City(seed=7, vehicles=200)


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_each_minute_is_one_file(city, tmp_path):
    feed = CityFeed(city, tmp_path, pace=0.0, minutes=3)
    feed.start()
    wait_until(lambda: feed.finished)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"minute-00000{m}.parquet" for m in range(3)]
    assert pq.read_table(minute_file(tmp_path, 2)).equals(city.reports(2))
    assert feed.rows == sum(city.reports(minute).num_rows for minute in range(3))


def test_a_visible_file_is_whole(city, tmp_path):
    feed = CityFeed(city, tmp_path, pace=0.0, minutes=60, ahead=60)
    feed.start()
    seen = set()
    while not feed.finished or len(seen) < 60:
        for path in set(tmp_path.glob("[!_]*")) - seen:
            assert pq.read_table(path).num_rows > 0
            seen.add(path)


def test_it_keeps_the_pace(city, tmp_path):
    begun = time.monotonic()
    feed = CityFeed(city, tmp_path, pace=0.05, minutes=5)
    feed.start()
    wait_until(lambda: feed.finished)
    assert time.monotonic() - begun >= 4 * 0.05


def test_stop_ends_an_endless_feed(city, tmp_path):
    feed = CityFeed(city, tmp_path, pace=0.0)
    feed.start()
    wait_until(lambda: feed.written > 2)
    feed.stop()
    feed.stop()
    assert feed.finished
    assert not list(tmp_path.glob("_*"))


def test_a_slow_reader_holds_up_the_feed(city, tmp_path):
    feed = CityFeed(city, tmp_path, pace=0.0, ahead=4)
    feed.start()
    wait_until(lambda: feed.written == 4)
    time.sleep(0.1)
    assert feed.written == 4
    feed.release(2)
    wait_until(lambda: feed.written == 6)
    feed.stop()


def test_released_files_are_deleted_when_old(city, tmp_path):
    feed = CityFeed(city, tmp_path, pace=0.0, ahead=5, keep=3, minutes=9)
    feed.start()
    wait_until(lambda: feed.written == 5)
    feed.release(4)
    wait_until(lambda: feed.finished)
    assert min(path.name for path in tmp_path.iterdir()) == minute_file(tmp_path, 4).name


def test_a_failure_reaches_whoever_asks(city, tmp_path):
    minute_file(tmp_path, 0).mkdir()
    feed = CityFeed(city, tmp_path, pace=0.0)
    feed.start()
    with pytest.raises(OSError, match="minute-000000"):
        wait_until(lambda: feed.finished)


def test_a_feed_that_never_started_can_be_stopped(city, tmp_path):
    feed = CityFeed(city, tmp_path / "feed")
    feed.stop()
    assert not feed.finished
    assert not feed.folder.exists()
