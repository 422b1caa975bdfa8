import numpy as np
import pyarrow as pa
import pytest

from penstock.expressions.schema import schema_of
from penstock_lab.workloads import CallRecords, zipf_shares
from penstock_lab.workloads.calls import CALL_COLUMNS, FAR, SUSPECT_COLUMNS, TOP_SPEED

RECORDS = CallRecords(calls=20_000, seconds=600, phones=300, cloned=0.01, disorder=2)


def microseconds(table, name):
    return table[name].cast(pa.int64()).to_numpy()


@pytest.mark.parametrize(("table", "columns"), [("table", CALL_COLUMNS), ("suspects", SUSPECT_COLUMNS)])
def test_tables_have_the_declared_columns(table, columns):
    made, declared = getattr(RECORDS, table), schema_of(columns).arrow()
    assert made.column_names == declared.names
    assert made.schema.types == declared.types
    assert all(column.null_count == 0 for column in made.columns)


def test_the_same_seed_gives_the_same_records_and_another_seed_others():
    again = CallRecords(calls=20_000, seconds=600, phones=300, cloned=0.01, disorder=2)
    other = CallRecords(calls=20_000, seconds=600, phones=300, cloned=0.01, disorder=2, seed=8)
    assert again.table.equals(RECORDS.table)
    assert not other.table.equals(RECORDS.table)


def test_records_arrive_at_most_the_disorder_after_their_emission():
    time = microseconds(RECORDS.table, "time")
    behind = np.maximum.accumulate(time) - time
    assert 1_000_000 < behind.max() < 2_000_000


def test_popularity_is_zipf():
    for name in ("caller", "called"):
        _, counts = np.unique(RECORDS.table[name].to_numpy(), return_counts=True)
        share = np.sort(counts)[::-1][:5] / 20_000
        assert share == pytest.approx(zipf_shares(300, 1.0)[:5], rel=0.1)


def test_calls_end_before_their_record_is_emitted():
    time, start, stop = (microseconds(RECORDS.table, name) for name in ("time", "start", "stop"))
    assert (start < stop).all()
    assert (stop <= time).all()
    assert np.mean((stop - start) / 1e6) == pytest.approx(121, rel=0.05)


def test_only_clones_are_faster_than_people():
    frauds = RECORDS.frauds
    clones = set(zip(frauds["caller"].to_pylist(), frauds["clone"].to_pylist(), strict=True))
    rows = RECORDS.table.sort_by([("caller", "ascending"), ("time", "ascending")])
    keys = zip(rows["caller"].to_pylist(), rows["time"].to_pylist(), strict=True)
    rows = rows.filter(pa.array([key not in clones for key in keys]))
    same = np.diff(rows["caller"].to_numpy()) == 0
    metres = np.hypot(np.diff(rows["x"].to_numpy()), np.diff(rows["y"].to_numpy()))[same]
    seconds = np.diff(microseconds(rows, "time"))[same] / 1e6
    assert same.sum() > 15_000
    assert (metres <= TOP_SPEED * seconds + 1e-6).all()


def test_every_clone_calls_within_a_minute_from_far_away():
    records = RECORDS.table.select(["caller", "time", "x", "y"])
    found = RECORDS.frauds.join(records, ["caller", "real"], ["caller", "time"], right_suffix="_real")
    found = found.join(
        records.rename_columns(["caller", "time", "x_clone", "y_clone"]),
        ["caller", "clone"],
        ["caller", "time"],
    )
    assert found.num_rows >= RECORDS.frauds.num_rows == 200
    seconds = (microseconds(found, "clone") - microseconds(found, "real")) / 1e6
    x, y = (found[f"{name}_clone"].to_numpy() - found[name].to_numpy() for name in "xy")
    assert seconds.min() > 0
    assert seconds.max() < 60
    assert np.hypot(x, y).min() > FAR


def test_a_number_is_reported_once_in_order_of_time():
    time = microseconds(RECORDS.suspects, "time")
    numbers = RECORDS.suspects["number"].to_pylist()
    assert len(set(numbers)) == len(numbers) == 15
    assert (np.diff(time) >= 0).all()
    assert set(numbers) & set(RECORDS.table["caller"].to_pylist())
