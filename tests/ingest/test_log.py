import errno
import os
import shutil
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import durable
from penstock.errors import BadGate, DamagedLog
from penstock.ingest.limits import Limits
from penstock.ingest.log.group_commit import LogEntry
from penstock.ingest.log.log import Log
from penstock.ingest.log.record import BLOCK, checksum, padded
from penstock.ingest.log.scan import scan
from raw_push import SCHEMA, files, rows


class Written:
    """A log together with what it reported."""

    def __init__(self, folder, segment_bytes=1 << 16, *, accept_loss=False, **limits):
        limits["segment_bytes"] = segment_bytes
        self.durable, self.failed, self._changed = [], [], threading.Condition()
        self.died = []
        self.log = Log(
            Path(folder),
            Limits(**limits),
            self._durable,
            self._failed,
            self.died.append,
            accept_loss=accept_loss,
        )

    def append(self, stream, sequence, count, frontier=None):
        payload = rows(sequence, count).serialize()
        self.log.append(LogEntry(stream, sequence, count, frontier, payload, checksum(payload)))

    def settled(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.durable) + len(self.failed) >= count, 120)

    def held(self):
        return {name: held.positions.ranges() for name, held in self.log.held.streams.items()}

    def read(self, stream, low, high):
        pieces = self.log.pieces(stream, low, high)
        return [
            each for piece in pieces for each in self.log.read(piece, SCHEMA)[1].column("number").to_pylist()
        ]

    def _durable(self, entries):
        with self._changed:
            self.durable += entries
            self._changed.notify_all()

    def _failed(self, _, entries):
        with self._changed:
            self.failed += entries
            self._changed.notify_all()


def filled(folder, counts, **limits):
    """One record of each count, dealt to three streams; what each stream then has."""
    written, nexts = Written(folder, **limits), {}
    for number, count in enumerate(counts):
        stream = f"reports/{number % 3}"
        written.append(stream, nexts.get(stream, 0), count, frontier=number)
        nexts[stream] = nexts.get(stream, 0) + count
        if number % 4 == 3:
            written.settled(number + 1)  # so that there are several groups
    written.settled(len(counts))
    return written, nexts


def test_rows_are_read_back_by_stream_and_sequence(tmp_path):
    written, nexts = filled(tmp_path, [3, 5, 2, 7, 1, 9, 4])
    assert written.held() == {stream: [(0, end)] for stream, end in nexts.items()}
    assert written.read("reports/0", 2, 14) == list(range(2, 14))
    written.log.close()


def test_groups_are_whole_blocks_also_above_what_is_staged_at_once(tmp_path):
    written = Written(tmp_path, segment_bytes=64 << 20)
    for number, count in enumerate([1, 400_000, 3]):
        written.append(f"reports/{number}", 0, count)
        written.settled(number + 1)
    offsets = [line[0] for line in written.log.held.segments[1].lines]
    assert len(offsets) == 3
    assert offsets[2] - offsets[1] > 9 << 20
    assert [each % BLOCK for each in [*offsets, written.log.held.bytes]] == [0, 0, 0, 0]
    assert written.read("reports/1", 0, 400_000) == list(range(400_000))
    written.log.close()


def test_a_file_system_without_direct_writes_serves_as_well(tmp_path, monkeypatch):
    def through_the_cache(path, flags, *mode, opened=os.open):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", through_the_cache)
    written, nexts = filled(tmp_path, [3, 5, 2, 7, 1])
    written.log.close()
    again = Written(tmp_path)
    assert all(again.read(stream, 0, end) == list(range(end)) for stream, end in nexts.items())
    again.log.close()


def test_a_log_opens_with_what_was_durable(tmp_path):
    counts = [3, 5, 2, 7, 1, 9, 4] * 8
    written, nexts = filled(tmp_path, counts, segment_bytes=4096)
    assert len(files(tmp_path)) > 3
    written.log.close()
    again = Written(tmp_path)
    assert again.held() == {stream: [(0, end)] for stream, end in nexts.items()}
    assert again.log.held.streams["reports/1"].frontier == max(range(1, len(counts), 3))
    assert all(again.read(stream, 0, end) == list(range(end)) for stream, end in nexts.items())
    again.log.close()


def test_the_index_files_only_save_time(tmp_path):
    written, _nexts = filled(tmp_path, [3, 5, 2, 7] * 8, segment_bytes=4096)
    before = written.held()
    written.log.close()
    for number, path in enumerate(sorted(tmp_path.glob("log/*.index"))):
        path.write_bytes(path.read_bytes()[:-3] if number % 2 else b"")
    assert Written(tmp_path).held() == before


@settings(max_examples=60)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.floats(0, 1), st.booleans())
def test_cut_at_any_byte_the_records_before_it_are_there(tmp_path_factory, counts, share, zeros):
    folder = tmp_path_factory.mktemp("cut")
    written, _ = filled(folder / "whole", counts)
    os.close(written.log._owner)  # left as a loss of power leaves it: not closed, no index, no noted end
    shutil.copytree(folder / "whole", folder / "cut")
    (folder / "cut" / "acknowledged").unlink()
    (segment,) = files(folder / "cut")
    whole = segment.read_bytes()
    records = scan(1, pa.py_buffer(whole)).records
    places = [(at + each.size + each.length, each.stream, each.sequence + each.rows) for at, each in records]
    size = int(share * places[-1][0])
    if zeros:
        size -= size % 512  # a disk writes whole sectors
    content = whole[:size].ljust(1 << 16 if zeros else 0, b"\0")
    segment.write_bytes(content)
    again = Written(folder / "cut")
    kept = [place for place in places if content[: place[0]] == whole[: place[0]]]
    assert again.held() == {
        name: [(0, max(end for _, each, end in kept if each == name))] for _, name, _ in kept
    }
    assert again.log.torn_bytes <= max(size - max((end for end, _, _ in kept), default=0), 0)
    assert not again.log.damage
    again.log.close()
    assert not kept or segment.stat().st_size == padded(kept[-1][0])


def test_a_log_that_was_cut_goes_on(tmp_path):
    written, _ = filled(tmp_path, [10, 10, 10])
    os.close(written.log._owner)
    (tmp_path / "acknowledged").unlink()  # the last group was not acknowledged
    (segment,) = files(tmp_path)
    os.truncate(segment, written.log.held.bytes - 100)
    again = Written(tmp_path)
    assert again.held() == {"reports/0": [(0, 10)], "reports/1": [(0, 10)]}
    again.append("reports/2", 0, 20)
    again.settled(1)
    again.log.close()
    assert Written(tmp_path).held()["reports/2"] == [(0, 20)]


def test_damage_of_what_was_acknowledged_is_told_and_leaves_a_hole(tmp_path):
    written, _ = filled(tmp_path, [10] * 12)  # four records to a group, three streams
    lines = written.log.held.segments[1].lines
    os.close(written.log._owner)
    (segment,) = files(tmp_path)
    content = bytearray(segment.read_bytes())
    content[lines[3][0] + lines[3][-1] - 100] ^= 1  # rows 10 to 20 of reports/0, in the first group
    segment.write_bytes(content)
    again = Written(tmp_path)
    assert [str(each).split(": ")[1] for each in again.log.damage] == ["rows 10 to 20 of stream 'reports/0'"]
    assert again.held()["reports/0"] == [(0, 10), (20, 40)]
    assert again.held()["reports/1"] == [(0, 40)]
    again.log.close()
    assert len(Written(tmp_path).log.damage) == 1, "told at every start"


def test_a_damaged_header_is_told_too(tmp_path):
    written, _ = filled(tmp_path, [10] * 12)
    lines = written.log.held.segments[1].lines
    os.close(written.log._owner)
    (segment,) = files(tmp_path)
    content = bytearray(segment.read_bytes())
    content[lines[1][0]] ^= 1
    segment.write_bytes(content)
    with pytest.raises(DamagedLog, match=r"rows of an unknown stream.*--accept-loss"):
        Written(tmp_path)
    again = Written(tmp_path, accept_loss=True)
    assert "rows of an unknown stream" in str(again.log.damage[0])
    assert again.held()["reports/1"] == [(10, 40)]
    again.log.close()
    assert len(Written(tmp_path).log.damage) == 1, "accepted once, told at every start"


def test_damage_found_while_reading_is_an_error(tmp_path):
    written, _ = filled(tmp_path, [10, 10, 10])
    first = written.log.held.segments[1].lines[0]
    written.log.close()
    (segment,) = files(tmp_path)
    content = bytearray(segment.read_bytes())
    content[first[-1] - 100] ^= 1
    segment.write_bytes(content)
    again = Written(tmp_path)
    with pytest.raises(DamagedLog, match="record at byte 0"):
        again.read("reports/0", 0, 10)
    assert again.read("reports/1", 0, 10) == list(range(10))


def test_committed_files_go_and_their_rows_are_remembered(tmp_path):
    written, nexts = filled(tmp_path, [30] * 60, segment_bytes=4096)
    count = len(files(tmp_path))
    written.log.delete_below({("reports", "traffic"): dict.fromkeys(nexts, 300)})
    assert 1 < len(files(tmp_path)) < count
    written.log.delete_below({("reports", "traffic"): nexts})
    assert len(files(tmp_path)) == 1
    written.log.close()
    again = Written(tmp_path)
    assert {stream: again.log.next(stream) for stream in nexts} == nexts


def test_a_reader_that_has_not_spoken_keeps_its_rows(tmp_path):
    written, nexts = filled(tmp_path, [30] * 60, segment_bytes=4096)
    count = len(files(tmp_path))
    written.log.delete_below({("reports", "slow"): {}, ("reports", "fast"): nexts})
    assert len(files(tmp_path)) == count
    written.log.delete_below({("reports", "fast"): nexts})
    assert len(files(tmp_path)) == 1


def test_two_gates_cannot_share_a_folder(tmp_path):
    first = Written(tmp_path)
    with pytest.raises(BadGate, match="another gate uses the folder"):
        Written(tmp_path)
    first.log.close()
    Written(tmp_path).log.close()


def test_one_sync_serves_many(tmp_path):
    written, _ = filled(tmp_path, [1])
    for number in range(200):
        written.append("reports/9", number, 1)
    written.settled(201)
    assert written.log.groups < 100
    assert [each.sequence for each in written.durable[1:]] == list(range(200))


def left_behind(written):
    """The folder as SIGKILL leaves it: nothing more is written, and the lock is free.

    Rows are reported durable before it is noted that they were acknowledged: wait for that, too.
    """
    until = time.monotonic() + 120
    while written.log._acknowledged.end < written.log._commit._writer.size:
        assert time.monotonic() < until, "the end of the last group was not noted"
        time.sleep(0.001)
    os.close(written.log._owner)
    return written.log.folder


def flipped(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_damage_of_the_last_group_is_told(tmp_path):
    """Defect 20: a bit flip in the last acknowledged group was cut off as never acknowledged."""
    written, _ = filled(tmp_path, [10, 10, 10])
    last = written.log.held.segments[1].lines[-1]
    left_behind(written)
    flipped(files(tmp_path)[0], last[0] + last[-1] - 100)
    again = Written(tmp_path)
    assert again.log.torn_bytes == 0
    assert [str(each).split(": ")[1] for each in again.log.damage] == ["rows 0 to 10 of stream 'reports/2'"]
    assert again.log.next("reports/2") == 10, "numbers that were acknowledged are not given again"
    again.append("reports/2", 10, 5)
    again.settled(1)
    again.log.close()
    assert Written(tmp_path).held()["reports/2"] == [(10, 15)]


def test_damage_of_the_last_group_is_in_doubt_where_its_end_was_not_noted(tmp_path):
    """Defect 20: after a loss of power only the bytes tell whether the last group was written in full."""
    written, _ = filled(tmp_path, [10, 10, 10])
    last = written.log.held.segments[1].lines[-1]
    left_behind(written)
    (tmp_path / "acknowledged").unlink()
    flipped(files(tmp_path)[0], last[0] + last[-1] - 100)
    with pytest.raises(DamagedLog, match=r"rows 0 to 10 of stream 'reports/2', perhaps never acknowledged"):
        Written(tmp_path)
    again = Written(tmp_path, accept_loss=True)
    assert again.held()["reports/0"] == [(0, 10)]
    assert again.log.next("reports/2") == 10


@pytest.mark.parametrize("kept", [0, 50])
def test_a_file_that_has_lost_acknowledged_rows_is_told(tmp_path, kept):
    """Defect 20: what was noted as acknowledged must be there, also if a file was cut or is missing."""
    written, _ = filled(tmp_path, [10, 10, 10])
    left_behind(written)
    (segment,) = files(tmp_path)
    if kept:
        os.truncate(segment, kept)
    else:
        segment.unlink()
    with pytest.raises(DamagedLog, match="rows of an unknown stream"):
        Written(tmp_path)


def test_what_is_deleted_is_remembered_before_a_file_goes(tmp_path, monkeypatch):
    """Defect 6: files went first, and that they had been there was written afterwards and not synced."""
    written, nexts = filled(tmp_path, [30] * 60, segment_bytes=4096)
    order = []
    for name in ("sync_handle", "delete"):
        monkeypatch.setattr(durable, name, noted(order, name, getattr(durable, name)))
    written.log.delete_below({("reports", "traffic"): nexts})
    deletions = [number for number, each in enumerate(order) if each == "delete"]
    assert order.index("sync_handle") < deletions[0]
    monkeypatch.undo()
    left_behind(written)
    assert {stream: Written(tmp_path).log.next(stream) for stream in ("reports/0",)} == {"reports/0": 600}


def noted(order, name, call):
    def run(*arguments):
        order.append(name)
        return call(*arguments)

    return run


def test_a_file_that_was_to_be_deleted_goes_at_the_next_start(tmp_path, monkeypatch):
    """Defect 6: a crash between the note and the deletion leaves a file, and its rows do not come back."""
    written, nexts = filled(tmp_path, [30] * 60, segment_bytes=4096)
    monkeypatch.setattr(durable, "_failure", durable._Failure("gate retention/delete:3+"))
    with pytest.raises(OSError, match="Input/output error"):
        written.log.delete_below({("reports", "traffic"): nexts})
    monkeypatch.undo()
    assert len(files(tmp_path)) > 1
    held = written.held()
    left_behind(written)
    again = Written(tmp_path)
    assert len(files(tmp_path)) == 1
    assert again.held() == held
    assert {stream: again.log.next(stream) for stream in nexts} == nexts
    again.append("reports/0", nexts["reports/0"], 5)
    again.settled(1)
    again.log.close()
    assert Written(tmp_path).held()["reports/0"][-1][1] == 605, "numbers of files are not used again"
