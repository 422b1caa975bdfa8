import random
import resource
import signal
import threading
import time

import pyarrow as pa
from pyarrow import flight

from penstock.ingest import Gate
from raw_push import GateProcess, RawPush, ask, files, numbers, ranges, rows

SEED = 11


def push_until_dead(address, stream, acknowledged, count):
    """Push without end; what was acknowledged is kept when the gate dies."""
    push = RawPush(address)
    acknowledged[stream] = push
    sequence = 0
    try:
        while not push.ended:
            if sequence - push.acknowledged.get(stream, 0) < 20 * count:
                push.send(stream, sequence, rows(sequence, count), connect=sequence == 0)
                sequence += count
            else:
                time.sleep(0.001)
    except (flight.FlightError, pa.ArrowException):
        return


def test_after_sigkill_everything_acknowledged_is_there(tmp_path):
    chance, before = random.Random(SEED), {}
    for life in range(2):
        with GateProcess(tmp_path, "--segment-mib", "1") as gate:
            for stream, upto in before.items():
                assert numbers(gate.address, stream, 0, upto) == list(range(upto))
            pushes = {}
            threads = [
                threading.Thread(
                    target=push_until_dead, args=(gate.address, f"reports/{life}-{n}", pushes, 50 + n)
                )
                for n in range(4)
            ]
            for each in threads:
                each.start()
            while len(pushes) < 4 or not all(push.acknowledged for push in list(pushes.values())):
                time.sleep(0.01)
            time.sleep(chance.uniform(0.1, 0.5))
            gate.process.send_signal(signal.SIGKILL)
            for each in threads:
                each.join(120)
            before |= {stream: push.acknowledged[stream] for stream, push in pushes.items()}
    with Gate("127.0.0.1:0", tmp_path) as gate:
        held = ranges(gate.address)
        for stream, upto in before.items():
            ((low, high),) = held[stream]
            assert low == 0
            assert high >= upto
            assert numbers(gate.address, stream, 0, high) == list(range(high))


def test_sigterm_answers_all_and_ends_well(tmp_path):
    with GateProcess(tmp_path) as gate:
        push = RawPush(gate.address)
        for sequence in range(0, 3000, 100):
            push.send("reports/1", sequence, rows(sequence, 100), connect=sequence == 0)
        push.wait_for("reports/1", 3000)
        gate.process.send_signal(signal.SIGTERM)
        assert gate.process.wait(120) == 0
        push.close()
    with Gate("127.0.0.1:0", tmp_path) as gate:
        assert ranges(gate.address) == {"reports/1": [(0, 3000)]}
        assert ask(gate.address, "status")["log"]["torn_bytes"] == 0


def test_a_full_disk_loses_nothing_and_is_left_again(tmp_path):
    with GateProcess(tmp_path) as gate, RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 1000), connect=True)
        push.wait_for("reports/1", 1000)
        room = ask(gate.address, "status")["log"]["bytes"] + 50_000
        _, most = resource.prlimit(gate.process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        sequence = 1000
        while push.heard.empty():
            push.send("reports/1", sequence, rows(sequence, 500))
            sequence += 500
            time.sleep(0.01)
        answer = push.answer()
        assert answer["reason"] == "LogFull"
        assert "make room on the disk" in answer["message"]
        taken = push.acknowledged["reports/1"]
        assert numbers(gate.address, "reports/1", 0, taken) == list(range(taken))
        assert "cannot be written" in ask(gate.address, "status")["trouble"]
        resource.prlimit(gate.process.pid, resource.RLIMIT_FSIZE, (most, most))
        push.send("reports/1", taken, rows(taken, 500))
        push.wait_for("reports/1", taken + 500)
        assert ask(gate.address, "status")["trouble"] is None
        gate.kill()
    with Gate("127.0.0.1:0", tmp_path) as gate:
        ((low, high),) = ranges(gate.address)["reports/1"]
        assert (low, high) == (0, taken + 500)
        assert numbers(gate.address, "reports/1", 0, high) == list(range(high))


def test_a_torn_tail_is_cut_off_and_reported(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as gate, RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 100), connect=True)
        push.wait_for("reports/1", 100)
    next(tmp_path.glob("log/*.index")).unlink()
    (segment,) = files(tmp_path)
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:199] + b"x")
    with GateProcess(tmp_path) as gate:
        assert "200 bytes that were never acknowledged are cut off" in gate.process.stderr.readline()
        assert ask(gate.address, "status")["log"]["torn_bytes"] == 200
        assert ranges(gate.address) == {"reports/1": [(0, 100)]}
