from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.state import ChannelStore, Location, Segment, View, read, store
from penstock.state.compaction import (
    BUDGET,
    MOST_LARGE,
    MOST_MOVED,
    MOST_SEGMENTS,
    budget,
    to_merge,
    to_rewrite,
)

SEEN = (View("rule", 0, 1),)


def stored(folder, rows):
    return store(Location(str(folder)), "s", pa.table({"v": range(rows)}), table="t", first=0, end=1)


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


def test_large_segments_wait_until_they_are_many():
    large, small = (Segment("s", "t", 0, 1, rows, rows * 10_000, held=rows) for rows in (1000, 10))
    assert to_merge([large] * 20 + [small] * 8) == ()
    assert to_merge([large] * 20 + [small] * 9) == [small] * 9
    assert to_merge([large] * MOST_LARGE + [small] * 8) == ()
    assert budget([large] * 10) == BUDGET
    assert budget([large] * 64) == 64 * 10_000_000 / 64


def test_of_too_many_large_segments_a_few_neighbours_are_merged():
    rng, written, segments = np.random.default_rng(5), 0, []
    for number in range(1000):
        rows = int(rng.integers(200, 400))
        segments.append(Segment(f"{number}", "t", 0, 1, rows, rows * 10_000, held=rows))
        merging = to_merge(segments)
        if merging:
            start, rows = segments.index(merging[0]), sum(each.rows for each in merging)
            assert list(merging) == segments[start : start + len(merging)]
            # No epoch rewrites much of the state.
            assert rows <= 1 / 12 * sum(each.rows for each in segments)
            written += rows
            merged = replace(merging[0], rows=rows, bytes=rows * 10_000, held=rows)
            segments[start : start + len(merging)] = [merged]
        assert len(segments) <= MOST_LARGE
    assert written < 5 * sum(each.rows for each in segments)


def test_the_budget_rewrites_small_segments_together_and_large_ones_in_parts():
    small, large = (Segment(name, "t", 0, 1, 10, 100, held=10, views=SEEN) for name in ("small", "large"))
    large = replace(large, bytes=10_000, held=1000, rows=1000)
    assert to_rewrite([small, small, large], 300) == [(small, 10), (small, 10), (large, 10)]
    assert to_rewrite([small, small, large], 250) == [(small, 10), (small, 10)]
    assert to_rewrite([replace(large, start=980, rows=20)], 150) == [(replace(large, start=980, rows=20), 15)]
    assert to_rewrite([large], 1) == [(large, 1)]
    assert to_rewrite([large] * (MOST_MOVED + 3), 1) == [(large, 1000)] * 3
    # To look for few rows in a large file is not for nothing.
    sparse = replace(large, rows=1)
    assert to_rewrite([sparse, sparse], 1500) == [(sparse, 1000), (sparse, 500)]
