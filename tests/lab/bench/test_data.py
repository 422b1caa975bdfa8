import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock_lab.bench.data import SECOND_US, START_US, DataSet, first_files

SMALL = DataSet(rows=10_000, seconds=20, keys=50, seed=3, rows_per_file=3_000)


def times(table):
    return table.column("time").cast("int64").to_numpy()


def test_no_row_is_a_second_behind_an_earlier_arrival():
    time = times(SMALL.table())
    behind = np.maximum.accumulate(time) - time
    assert 0 < behind.max() < SECOND_US


def test_event_times_are_even_over_the_seconds():
    steps = np.diff(np.sort(times(SMALL.table())))
    assert set(steps) == {20 * SECOND_US // 10_000}
    assert times(SMALL.table()).min() == START_US


def test_the_same_fields_give_the_same_rows():
    assert SMALL.table().equals(SMALL.table())
    assert not SMALL.table().equals(DataSet(10_000, 20, 50, 4, 3_000).table())


def test_keys_follow_zipf():
    counts = pc.value_counts(DataSet(200_000, 20, 50, 3).table().column("key")).field("counts").to_numpy()
    ranked = np.sort(counts)[::-1]
    assert len(ranked) == 50
    assert 1.9 < ranked[0] / ranked[1] < 2.1
    assert 9 < ranked[0] / ranked[9] < 11


def test_sums_of_values_do_not_depend_on_their_order():
    values = SMALL.table().column("value").to_numpy()
    assert np.cumsum(values)[-1] == np.cumsum(values[::-1])[-1]


def test_files_come_in_order_of_arrival(tmp_path):
    folder = SMALL.write(tmp_path)
    paths = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    assert [pq.read_metadata(path).num_rows for path in paths] == [3_000, 3_000, 3_000, 1_000]
    assert (
        np.concatenate([times(pq.read_table(path)) for path in paths]).tolist()
        == times(SMALL.table()).tolist()
    )


def test_a_data_set_is_written_once(tmp_path):
    first = SMALL.write(tmp_path)
    before = (first / "000000.parquet").stat().st_ctime_ns
    assert SMALL.write(tmp_path) == first
    assert (first / "000000.parquet").stat().st_ctime_ns == before


def test_the_first_files_keep_their_names_and_times(tmp_path):
    folder = SMALL.write(tmp_path)
    some = first_files(folder, 2)
    assert sorted(path.name for path in some.iterdir()) == ["000000.parquet", "000001.parquet"]
    assert (some / "000001.parquet").stat().st_mtime == (folder / "000001.parquet").stat().st_mtime
    assert first_files(folder, 9) == folder
