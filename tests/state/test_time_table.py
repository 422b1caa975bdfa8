import numpy as np
import pyarrow as pa
import pytest

from penstock.state import TIME, ChannelStore, Location, TimeTable

SCHEMA = pa.schema([("_ps_key0", pa.int64()), (TIME, pa.int64()), ("v", pa.int64())])


def rows(*times):
    return pa.table([[1] * len(times), list(times), list(times)], schema=SCHEMA)


def opened(table, tmp_path, segments=(), frontiers=()):
    return table.open(ChannelStore(Location(str(tmp_path)), "e", tuple(segments)), SCHEMA, frontiers)


def test_rows_are_kept_in_the_order_of_time(tmp_path):
    table = TimeTable("rows", lives=(0, 0))
    (segment,) = opened(table, tmp_path).close_by_time(3, rows(9, 2, 5, 3))
    assert (segment.first, segment.end, segment.rows) == (3, 10, 3)
    found = opened(table, tmp_path, [segment], (5,))
    assert found.rows["v"].to_pylist() == [5, 9]
    assert [each["v"].to_pylist() for each in found.between(0, 9)] == [[5]]
    assert found.between(10, 99) == []


def test_the_dead_front_is_passed_over_without_a_copy_or_a_write(tmp_path):
    table, count = TimeTable("rows", lives=(0, 0)), 1 << 18
    times = np.arange(count)
    new = pa.table([times, times, times], schema=SCHEMA)
    segments = opened(table, tmp_path).close_by_time(0, new)
    before = set(Location(str(tmp_path)).names())
    found = opened(table, tmp_path, segments, (1000,))
    allocated = pa.total_allocated_bytes()
    (released,) = found.between(1000, count - 5)
    assert released.num_rows == count - 1005
    assert pa.total_allocated_bytes() - allocated < 1 << 16
    assert found.close_by_time(count - 5) == segments
    assert found.close_by_time(count) == []
    assert set(Location(str(tmp_path)).names()) == before


def test_a_segment_without_such_times_is_not_read(tmp_path):
    table = TimeTable("rows", lives=(0, 0))
    (segment,) = opened(table, tmp_path).close_by_time(0, rows(50))
    (tmp_path / segment.name).unlink()
    found = opened(table, tmp_path, [segment], (10,))
    assert found.between(10, 50) == []
    assert found.close_by_time(20) == [segment]


def test_marks_are_written_each_epoch_and_rows_are_not(tmp_path):
    table = TimeTable("left", marked=True)
    none = np.zeros(0, np.bool_)
    first = opened(table, tmp_path).close_by_masks(none, none, rows(1, 2, 3), np.array([True, False, False]))
    assert [each.level for each in first] == [0, -1]
    found = opened(table, tmp_path, first)
    assert found.matched.tolist() == [True, False, False]
    second = found.close_by_masks(np.array([True, False, True]), np.array([True, False, True]))
    assert second[0] == first[0]
    assert second[1] != first[1]
    again = opened(table, tmp_path, second)
    assert again.rows["v"].to_pylist() == [1, 3]
    assert again.matched.tolist() == [True, True]
    assert [each["v"].to_pylist() for each in again.between(2, 9)] == [[3]]
    with pytest.raises(AssertionError, match="closed by masks"):
        again.close_by_time(0)


def test_segments_with_few_living_rows_are_rewritten(tmp_path):
    table = TimeTable("left", marked=True)
    none = np.zeros(0, np.bool_)
    segments = opened(table, tmp_path).close_by_masks(none, none, rows(*range(10)))
    found = opened(table, tmp_path, segments)
    (kept, _) = found.close_by_masks(found.rows["v"].to_numpy() > 6, found.matched)
    assert kept.rows == 3
    assert found.close_by_masks(np.zeros(10, np.bool_), found.matched) == []


def test_other_frontiers_than_that_of_its_port_kill_nothing():
    table = TimeTable("left", lives=(1, 30))
    assert table.alive_from((500, None)) is None
    assert table.alive_from(()) is None
    assert table.alive_from((500, 100)) == 70
    assert TimeTable("left").alive_from((500, 100)) is None
