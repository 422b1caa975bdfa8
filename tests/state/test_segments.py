import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.state import ChannelStore, Location, masked, read, store
from penstock.state.compaction import MOST_SEGMENTS, hollow, to_merge


def stored(folder, rows):
    return store(Location(str(folder)), "s", pa.table({"v": range(rows)}), table="t", first=0, end=1)


def test_masks_on_masks_leave_the_file_as_it_is(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 21)
    before = folder.read(segment.name)
    first = masked(folder, segment, np.arange(21) % 2 == 0)
    second = masked(folder, first, np.arange(11) % 3 == 0)
    assert read(folder, second)["v"].to_pylist() == [0, 6, 12, 18]
    assert read(folder, first)["v"].to_pylist() == list(range(0, 21, 2))
    assert folder.read(segment.name) == before
    assert (second.rows, second.held, second.living_bytes) == (4, 21, segment.bytes * 4 / 21)
    assert set(folder.names()) == {*first.files, *second.files}


def test_a_torn_mask_is_named(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 100)
    cut = masked(folder, segment, np.arange(100) > 3)
    (tmp_path / cut.mask).write_bytes((tmp_path / cut.mask).read_bytes()[:-1])
    with pytest.raises(DamagedCheckpoint, match=cut.mask):
        read(folder, cut)
    (tmp_path / cut.mask).unlink()
    with pytest.raises(DamagedCheckpoint, match="missing"):
        read(folder, cut)


def test_a_harmed_segment_is_named(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 9)
    path = tmp_path / segment.name
    data = path.read_bytes()
    path.write_bytes(b"\0" * len(data))
    with pytest.raises(DamagedCheckpoint, match=f"{segment.name} is altered"):
        read(folder, segment)
    path.write_bytes(data[:-10])
    with pytest.raises(DamagedCheckpoint, match=f"{segment.name} has {len(data) - 10} bytes"):
        read(folder, segment)
    path.unlink()
    with pytest.raises(MissingSegment, match=segment.name):
        read(folder, segment)


def test_rows_are_read_in_place(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 1 << 20)
    before = pa.total_allocated_bytes()
    rows = read(folder, segment)
    assert rows.num_rows == 1 << 20
    assert pa.total_allocated_bytes() - before < 1 << 16


def test_new_names_never_meet_and_say_where_they_come_from(tmp_path):
    channel = ChannelStore(Location(str(tmp_path)), "e7-2")
    rows = pa.table({"v": [1]})
    names = [channel.store(rows, table="panes", first=0, end=8, level=level).name for level in (0, 8, 8)]
    assert len(set(names)) == 3
    assert [name.rsplit("-", 1)[0] for name in names] == ["e7-2-panes", "e7-2-panes-8", "e7-2-panes-8"]
    assert channel.of("panes") == ()


def test_each_row_is_merged_a_logarithm_of_times(tmp_path):
    one = stored(tmp_path, 1)
    segments, written = [], 0
    for _ in range(2000):
        segments.append(one)
        merging = to_merge(segments)
        if merging:
            rows = sum(each.rows for each in merging)
            written += rows
            merged = type(one)(one.name, "t", 0, 1, rows, 1)
            segments = [*segments[: len(segments) - len(merging)], merged]
        assert len(segments) <= MOST_SEGMENTS + 2
    assert sum(each.rows for each in segments) == 2000
    assert written < 2000 * 11


def test_a_segment_is_hollow_when_most_of_it_has_gone(tmp_path):
    folder, segment = Location(str(tmp_path)), stored(tmp_path, 10)
    assert not hollow(segment)
    assert not hollow(masked(folder, segment, np.arange(10) < 5))
    assert hollow(masked(folder, segment, np.arange(10) < 4))
