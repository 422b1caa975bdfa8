"""Errors of the disk: everything that waits is answered, and the log goes on or ends with a reason.

Defect 10: a passing error killed the thread of the log, and the gate hung for ever.
"""

import ast
from pathlib import Path

import pytest

from ingest.test_log import Written, filled
from penstock import durable
from penstock.ingest.client import Client, Connection
from raw_push import GateProcess, RawPush, ask, files, numbers, ranges, rows

PACKAGE = Path(__file__).parents[2] / "src" / "penstock"


def failing(monkeypatch, point):
    monkeypatch.setattr(durable, "_failure", durable._Failure(point))


def sent(written, stream, sequence, count):
    """Send rows until they are taken, as a client does; how often they were refused."""
    refused = 0
    while True:
        before = len(written.durable) + len(written.failed)
        written.append(stream, sequence, count)
        written.settled(before + 1)
        if (written.durable[-1].stream, written.durable[-1].sequence) == (stream, sequence):
            return refused
        refused += 1


# Points that a log passes while it writes, and how many groups they may cost.
POINTS = [
    ("gate group/write", 1),
    ("gate group/sync", 1),
    ("gate segment/cut", 0),
    ("gate segment/sync folder", 1),
    ("gate acknowledged/write", 0),
    ("gate index/write", 0),
]


@pytest.mark.parametrize(("point", "cost"), POINTS)
def test_a_passing_error_costs_one_answer(tmp_path, monkeypatch, point, cost):
    written, _ = filled(tmp_path, [10, 10, 10], segment_bytes=8192)
    failing(monkeypatch, point)
    refused = [sent(written, "reports/9", sequence, 10) for sequence in range(0, 200, 10)]
    assert sum(refused) == cost
    assert durable._failure.left <= 0, "the point was never passed"
    assert written.read("reports/9", 0, 200) == list(range(200))
    written.log.close()
    again = Written(tmp_path)
    assert not again.log.damage
    assert again.read("reports/9", 0, 200) == list(range(200))


def test_a_file_that_cannot_be_cut_is_left(tmp_path, monkeypatch):
    """The group that failed stays in the old file; nobody heard of it, and its rows come again."""
    written, _ = filled(tmp_path, [10])
    monkeypatch.setattr(durable, "cut", refuse)
    failing(monkeypatch, "gate group/sync")
    assert sent(written, "reports/9", 0, 10) == 1
    monkeypatch.undo()
    assert len(files(tmp_path)) == 2
    written.log.close()
    again = Written(tmp_path)
    assert not again.log.damage
    assert again.read("reports/9", 0, 10) == list(range(10))


def refuse(*_):
    raise OSError(5, "Input/output error")


def test_a_disk_that_stays_broken_ends_the_log_with_a_reason(tmp_path, monkeypatch):
    written, _ = filled(tmp_path, [10])
    failing(monkeypatch, "gate group/sync:1+")
    for number in range(5):
        written.append("reports/9", number, 1)
        written.settled(2 + number)
    written.log._commit._thread.join(120)
    assert len(written.failed) == 5
    (error,) = written.died
    assert "5 groups in a row could not be written" in str(error)


def test_an_unexpected_error_answers_what_waits(tmp_path):
    written, _ = filled(tmp_path, [10])

    def surprise():
        raise ValueError("surprise")

    written.log._commit._before = surprise
    written.append("reports/9", 0, 10)
    written.settled(2)
    written.log._commit._thread.join(120)
    assert [each.stream for each in written.failed] == ["reports/9"]
    assert str(written.died[0]) == "surprise"


def test_a_gate_goes_on_after_an_error_of_its_disk(tmp_path, monkeypatch):
    """A real gate and a client: one sync fails, the rows wait and are stored once."""
    monkeypatch.setenv("PENSTOCK_FAIL_AT", "gate group/sync:3")
    with GateProcess(tmp_path) as gate, Connection(gate.address) as connection:
        client = Client(connection, "reports/1", rows(0, 1).schema)
        for sequence in range(0, 500, 100):
            client.push(rows(sequence, 100))
            client.flush(120)
        client.close(120)
        assert numbers(gate.address, "reports/1", 0, 500) == list(range(500))
        assert ask(gate.address, "statistics")["counts"]["failed writes"] == 1
        assert len(files(tmp_path)) == 2


def test_a_gate_whose_disk_stays_broken_ends_with_a_status(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_FAIL_AT", "gate group/sync:2+")
    with GateProcess(tmp_path) as gate:
        push = RawPush(gate.address)
        push.send("reports/1", 0, rows(0, 100), connect=True)
        push.wait_for("reports/1", 100)
        for _ in range(4):
            push.send("reports/1", 100, rows(100, 100))
            assert push.answer()["reason"] == "LogFull"
        push.send("reports/1", 100, rows(100, 100))  # the gate ends with this one; its answer may be cut off
        assert gate.process.wait(120) == 1
        assert "5 groups in a row could not be written" in gate.process.stderr.read()
    monkeypatch.delenv("PENSTOCK_FAIL_AT")
    with GateProcess(tmp_path) as gate:
        assert ranges(gate.address) == {"reports/1": [(0, 100)]}


def test_an_error_while_deleting_does_not_end_the_gate(tmp_path, monkeypatch):
    """The deletion that followed a group ran in the thread of the log, and an error there ended it."""
    monkeypatch.setenv("PENSTOCK_FAIL_AT", "gate retention/delete:1+")
    options = ("--segment-mib", "1", "--store-mib", "3", "--discard-uncommitted")
    with GateProcess(tmp_path, *options) as gate, Connection(gate.address) as connection:
        client = Client(connection, "reports/1", rows(0, 1).schema)
        for number in range(8):
            client.push(rows(number * 20_000, 20_000), timeout=120)
            client.flush(120)
        client.close(120)
        assert ask(gate.address, "status")["log"]["discarded_segments"] > 0
    assert len(files(tmp_path)) > 3, "none could be deleted"
    monkeypatch.delenv("PENSTOCK_FAIL_AT")
    with GateProcess(tmp_path, *options) as gate:
        assert len(files(tmp_path)) <= 3
        ((low, high),) = ranges(gate.address)["reports/1"]
        assert high == 160_000
        assert numbers(gate.address, "reports/1", low, high) == list(range(low, high))


def test_every_thread_of_the_ingest_path_is_a_service():
    """A thread that `penstock.threads` starts cannot end in silence."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted((PACKAGE / "ingest").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"threading.Thread", "threading.Timer"}
    ]
    assert not found, f"use penstock.threads.service: {', '.join(found)}"


def test_a_full_disk_does_not_stop_deletions(tmp_path, monkeypatch):
    """What is deleted has to be written first; the index of a file that goes makes room for it."""
    written, nexts = filled(tmp_path, [30] * 60, segment_bytes=4096)
    failing(monkeypatch, "catalogue/write")
    written.log.delete_below({("reports", "traffic"): nexts})
    assert len(files(tmp_path)) == 1
    written.log.close()
    again = Written(tmp_path)
    assert {stream: again.log.next(stream) for stream in nexts} == nexts


def test_nothing_is_deleted_that_cannot_be_remembered(tmp_path, monkeypatch):
    """Defect 6: on a full disk files went although nothing said so."""
    written, nexts = filled(tmp_path, [30] * 60, segment_bytes=4096)
    before, held = len(files(tmp_path)), written.held()
    failing(monkeypatch, "catalogue/write:1+")
    with pytest.raises(OSError, match="Input/output error"):
        written.log.delete_below({("reports", "traffic"): nexts})
    assert len(files(tmp_path)) == before
    assert written.held() == held
