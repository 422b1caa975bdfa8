import io
from datetime import timedelta

import duckdb
import pytest
from rich.console import Console

from penstock.demo.city import DAWN
from penstock.demo.main import run_demo
from penstock.demo.results import last_hour, result_files


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A demo of 30 minutes of city time, its folder and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    console = Console(file=io.StringIO(), width=120)
    run_demo(folder, minutes=30, console=console)
    return folder, console.file.getvalue()


def count(files, where="true", *values):
    if not files:
        return 0
    with duckdb.connect() as connection:
        connection.read_parquet([str(each) for each in files]).create_view("rows")
        return connection.execute(f"SELECT count(*) FROM rows WHERE {where}", values).fetchone()[0]


def test_the_last_hour_holds_every_report_that_was_not_late(finished):
    folder, _ = finished
    areas = last_hour(result_files(folder / "results"))
    late = count(result_files(folder / "late"))
    in_window = "kind = 'traffic' AND time >= ?::TIMESTAMPTZ - INTERVAL 1 HOUR AND time < ?"
    fed = count(result_files(folder / "feed"), in_window, areas[0].end, areas[0].end)
    assert fed - late <= sum(each.reports for each in areas) <= fed


def test_it_runs_to_the_end_of_the_feed(finished):
    folder, _ = finished
    # The frontier stays 5 seconds behind the last file's minute, so that one window cannot close.
    minutes = len(result_files(folder / "feed")) - 1
    assert last_hour(result_files(folder / "results"))[0].end == DAWN + timedelta(minutes=minutes)


def test_it_leaves_a_chart(finished):
    folder, _ = finished
    assert (folder / "traffic.png").stat().st_size > 10_000


def test_it_says_what_came_out_and_where_to_look_next(finished):
    folder, said = finished
    for part in (
        "reports in",
        "rejected",
        f"{folder}/results",
        "traffic.png",
        "docs/architecture.md",
        "duckdb.sql",
    ):
        assert part in said
