from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.demo.chart import draw
from penstock.demo.results import Area, busiest, history, last_hour

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
