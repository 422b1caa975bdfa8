from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from penstock_lab.bench.results import count, delivered, last_end, pairs_delivered, projected_delivered

SECOND = 1_000_000


def write(folder, name, rows):
    folder.mkdir(exist_ok=True)
    columns = ("window_start", "window_end", "key", "reports", "mean", "top")
    stamped = [
        (datetime.fromtimestamp(s, UTC), datetime.fromtimestamp(e, UTC), *rest) for s, e, *rest in rows
    ]
    pq.write_table(
        pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in stamped]), folder / name
    )


A, B = (0, 10, 1, 2, 1.5, 2.0), (10, 20, 1, 1, 3.0, 3.0)


def test_order_and_files_do_not_matter(tmp_path):
    write(tmp_path / "one", "x.parquet", [A, B])
    write(tmp_path / "two", "x.parquet", [B])
    write(tmp_path / "two", "y.parquet", [A])
    assert delivered(tmp_path / "one", 20 * SECOND) == delivered(tmp_path / "two", 20 * SECOND)


def test_a_row_that_comes_twice_shows(tmp_path):
    write(tmp_path / "one", "x.parquet", [A])
    write(tmp_path / "two", "x.parquet", [A, A])
    assert delivered(tmp_path / "one", 20 * SECOND) != delivered(tmp_path / "two", 20 * SECOND)


def test_windows_past_the_limit_are_left_out(tmp_path):
    write(tmp_path / "one", "x.parquet", [A, B])
    assert delivered(tmp_path / "one", 10 * SECOND).rows == 1
    assert delivered(tmp_path / "one", None).rows == 2
    assert last_end(tmp_path / "one") == 20 * SECOND
    assert count(tmp_path / "one") == 2


def test_an_engine_without_output_delivered_nothing(tmp_path):
    assert count(tmp_path) == 0
    assert last_end(tmp_path) is None
    assert delivered(tmp_path, 10 * SECOND).rows == 0


def test_a_computed_value_that_differs_shows(tmp_path):
    for name, scaled in (("one", 1.5), ("same", 1.5), ("other", 1.25)):
        (tmp_path / name).mkdir()
        time = pa.array([0], pa.timestamp("us", "UTC"))
        pq.write_table(
            pa.table({"time": time, "key": [1], "scaled": [scaled]}), tmp_path / name / "x.parquet"
        )
    one, same, other = (projected_delivered(tmp_path / name) for name in ("one", "same", "other"))
    assert one.rows == 1
    assert one == same
    assert one != other


def pair(folder, sent_south):
    folder.mkdir(exist_ok=True)
    moment = datetime.fromtimestamp(5, UTC)
    row = {"time": moment, "caller": 1, "sent_north": moment, "sent_south": sent_south, "metres": 1.5}
    schema = pa.schema(
        {
            "time": pa.timestamp("us", "UTC"),
            "caller": pa.int64(),
            "sent_north": pa.timestamp("us", "UTC"),
            "sent_south": pa.timestamp("us", "UTC"),
            "metres": pa.float64(),
        }
    )
    pq.write_table(pa.Table.from_pylist([row], schema=schema), folder / "x.parquet")


def test_a_pair_and_a_row_without_a_partner_differ(tmp_path):
    pair(tmp_path / "one", datetime.fromtimestamp(6, UTC))
    pair(tmp_path / "two", None)
    assert pairs_delivered(tmp_path / "one", None) != pairs_delivered(tmp_path / "two", None)
    assert pairs_delivered(tmp_path / "two", None).rows == 1
    assert pairs_delivered(tmp_path / "two", 5 * SECOND).rows == 0
