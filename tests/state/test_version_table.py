import numpy as np
import pyarrow as pa

from penstock.state import HASH, KNOWN, NO_TIMER, TIMER, ChannelStore, Location, VersionTable, read
from penstock.state.compaction import MOST_SEGMENTS

TABLE = VersionTable("state", ("_ps_key0",))
SCHEMA = pa.schema(
    [
        ("_ps_key0", pa.int64()),
        (HASH, pa.int64()),
        (TIMER, pa.int64()),
        (KNOWN, pa.bool_()),
        ("n", pa.int64()),
    ]
)


def versions(keys, *, hashes=None, timers=None, known=None, n=0):
    count = len(keys)
    columns = [keys, hashes or keys, timers or [NO_TIMER] * count, known or [True] * count, [n] * count]
    return pa.table(columns, schema=SCHEMA)


def opened(tmp_path, segments):
    return TABLE.open(ChannelStore(Location(str(tmp_path)), "e", tuple(segments)), SCHEMA)


def found(tmp_path, segments, keys, hashes=None):
    keys_ = pa.table({"_ps_key0": pa.array(keys, pa.int64())})
    return opened(tmp_path, segments).find(np.array(hashes or keys, np.int64).view(np.uint64), keys_)


def test_the_newest_version_is_found_also_under_one_hash(tmp_path):
    segments = opened(tmp_path, []).close(versions([1, 2, 3], hashes=[7, 7, -9], n=1))
    segments = opened(tmp_path, segments).close(versions([2], hashes=[7], n=2, timers=[50]))
    answer = found(tmp_path, segments, [3, 2, 1, 4], [-9, 7, 7, 7])
    assert answer.state["n"].to_pylist() == [1, 2, 1, None]
    assert answer.timers.tolist() == [NO_TIMER, 50, NO_TIMER, NO_TIMER]
    assert answer.known.tolist() == answer.present.tolist() == [True, True, True, False]


def test_a_key_can_be_forgotten_while_older_versions_are_there(tmp_path):
    segments = opened(tmp_path, []).close(versions(list(range(50)), n=1))
    segments = opened(tmp_path, segments).close(versions([3], known=[False]))
    answer = found(tmp_path, segments, [3, 4])
    assert answer.known.tolist() == [False, True]
    assert answer.present.tolist() == [True, True]
    assert answer.state["n"].to_pylist() == [None, 1]
    (shown,) = TABLE.show(Location(str(tmp_path)), segments, ())
    assert shown.num_rows == 49


def test_forgotten_keys_leave_nothing_behind_and_segments_stay_few(tmp_path):
    segments = []
    for epoch in range(60):
        segments = opened(tmp_path, segments).close(versions([epoch], n=epoch))
        segments = opened(tmp_path, segments).close(versions([epoch], known=[False]))
        assert len(segments) <= MOST_SEGMENTS + 2
    assert sum(each.rows for each in segments) < 40
    everything = [row for each in segments for row in read(Location(str(tmp_path)), each)[KNOWN].to_pylist()]
    assert found(tmp_path, segments, list(range(60))).known.sum() == 0
    assert len(everything) < 40


def test_timers_are_due_once_and_only_where_no_newer_version_is(tmp_path):
    segments = opened(tmp_path, []).close(versions([1, 2, 3], timers=[10, 20, 30]))
    segments = opened(tmp_path, segments).close(versions([2], timers=[NO_TIMER]))
    states = opened(tmp_path, segments)
    assert states.due(0, 30)["_ps_key0"].to_pylist() == [1, 3]
    assert states.due(10, 29).num_rows == 0
    assert states.due(-5, 10).schema.names == ["_ps_key0", HASH]
    assert [(each.first, each.end) for each in segments] == [(10, 31), (NO_TIMER, -NO_TIMER)]


def test_nothing_changes_without_changes(tmp_path):
    segments = opened(tmp_path, []).close(versions([5, 6]))
    assert opened(tmp_path, segments).close() == segments
    assert opened(tmp_path, []).close() == []
    assert opened(tmp_path, []).close(versions([5], known=[False])) == []
