from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.epochs import SIX, epoch
from penstock.demo.chart import draw
from penstock.demo.results import Area, Tally, busiest, fresh_folder, history, last_hour
from penstock.errors import BadSink

SEVEN = datetime(2024, 5, 14, 7, tzinfo=UTC)
#        end    area          reports  mean  top   jam
ROWS = [
    (SEVEN, "12044:1070", 20, 30.0, 80.0, False),
    (SEVEN, "12045:1070", 50, 40.0, 90.0, False),
    (SEVEN + timedelta(minutes=1), "12044:1070", 60, 10.0, 70.0, True),
    (SEVEN + timedelta(minutes=1), "12045:1070", 55, 40.0, 90.0, False),
]


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, rows in zip(paths, (ROWS[:2], ROWS[2:]), strict=True):
        columns = dict(
            zip(("window_end", "area", "reports", "mean", "top", "jam"), zip(*rows, strict=True), strict=True)
        )
        pq.write_table(pa.table(columns), path)
    return paths


def test_the_last_hour_has_the_busiest_area_first(files):
    assert last_hour(files) == [Area(*ROWS[2]), Area(*ROWS[3])]


def test_the_busiest_area_has_the_most_reports_over_all_windows(files):
    assert busiest(files, 1) == ["12045:1070"]


def test_the_history_of_an_area_is_in_order(files):
    assert history(files[::-1], "12044:1070") == [Area(*ROWS[0]), Area(*ROWS[2])]


def test_no_files_are_no_results():
    assert last_hour([]) == []


def test_the_chart_is_a_png(files, tmp_path):
    draw(files, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_totals_add_up():
    tally = Tally()
    tally.take([epoch(0), epoch(1)])
    assert (tally.rows, tally.results, tally.late, tally.rejected) == (2000, 80, 4, 2)
    assert tally.rows_per_second == 2000


def test_an_epoch_counts_once():
    tally = Tally()
    tally.take([epoch(0), epoch(1)])
    assert [each.epoch for each in tally.take([epoch(1), epoch(2)])] == [2]
    assert tally.rows == 3000


def test_an_epoch_without_frontier_keeps_the_one_before():
    tally = Tally()
    tally.take([epoch(0), epoch(1, frontier=None)])
    assert tally.frontier == SIX


def test_nothing_has_no_rate():
    assert Tally().rows_per_second == 0


def test_a_new_folder_is_made(tmp_path):
    folder = fresh_folder(tmp_path / "deep" / "demo")
    assert folder.path.is_dir()


def test_what_an_earlier_demo_left_is_deleted(tmp_path):
    folder = fresh_folder(tmp_path / "demo")
    folder.chart.touch()
    fresh_folder(tmp_path / "demo")
    assert not folder.chart.exists()


def test_an_empty_folder_is_taken(tmp_path):
    assert fresh_folder(tmp_path).path == tmp_path


def test_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(BadSink, match="did not write"):
        fresh_folder(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "demo").touch()
    with pytest.raises(BadSink, match="is a file"):
        fresh_folder(tmp_path / "demo")
