"""Loss of power: whatever disk it leaves, a gate's log opens with everything that was acknowledged."""

import json
import os
import random
import shutil
import sys
from pathlib import Path

import pytest

from ingest.test_log import Written
from penstock import durable
from penstock.durable import Purpose
from penstock.ingest.limits import Limits
from penstock.ingest.log import catalogue
from penstock.ingest.log.log import Log
from power_loss import PowerLoss, losses
from raw_push import SCHEMA

STREAMS = [f"reports/{number}" for number in range(3)]
READER = ("reports", "traffic")


class Acknowledging(Written):
    """A log whose answers are part of the record: what was answered before a loss must be there after it."""

    def _durable(self, entries):
        for each in entries:
            durable.reached(Purpose.GATE_GROUP, json.dumps([each.stream, each.sequence + each.rows]))
        super()._durable(entries)


class Scenario:
    """One run of a log with rotation, retention, compaction, errors of the disk, kills and restarts."""

    def __init__(self, folder, seed):
        self.folder, self.chance = folder, random.Random(seed)
        self.nexts, self.committed = dict.fromkeys(STREAMS, 0), dict.fromkeys(STREAMS, 0)

    def run(self, monkeypatch):
        for life in range(4):
            written = Acknowledging(self.folder, segment_bytes=12_288)
            if not life:
                self.remember(written)
            for step in range(14):
                if step == 9 and life in {1, 2}:
                    point = "gate group/sync" if life == 1 else "gate group/write"
                    monkeypatch.setattr(durable, "_failure", durable._Failure(point))
                self.write(written)
                if step % 5 == 4:
                    self.commit(written)
            if life % 2:
                os.close(written.log._owner)  # as SIGKILL leaves it
            else:
                written.log.close()

    def remember(self, written):
        written.log.catalogue.add_schema("reports", SCHEMA)
        written.log.catalogue.add_reader(*READER)
        written.log.catalogue.sync()
        durable.reached(Purpose.CATALOGUE, "remembered")

    def write(self, written):
        """One to three records, sent again until they are durable."""
        for stream in self.chance.sample(STREAMS, self.chance.randint(1, 3)):
            count = self.chance.choice([1, 5, 40, 120])
            wanted = self.nexts[stream] + count
            while not any((e.stream, e.sequence + e.rows) == (stream, wanted) for e in written.durable):
                before = len(written.durable) + len(written.failed)
                written.append(stream, self.nexts[stream], count)
                if self.chance.random() < 0.3:
                    written.log.catalogue.declare(stream, {"max_rate": wanted})
                written.settled(before + 1)
            self.nexts[stream] = wanted

    def commit(self, written):
        self.committed = {each: self.chance.randint(low, self.nexts[each]) for each, low in self.low()}
        durable.reached(Purpose.GATE_RETENTION, json.dumps(self.committed))
        written.log.delete_below({READER: self.committed})

    def low(self):
        return self.committed.items()


def recorded(folder, seed, monkeypatch):
    monkeypatch.setattr(catalogue, "_SPARE", 512)
    monkeypatch.setattr(catalogue, "_TIMES", 1)
    monkeypatch.setattr(durable, "_record", durable._Recorder(folder / "record"))
    Scenario(folder / "gate", seed).run(monkeypatch)
    monkeypatch.undo()
    return PowerLoss(folder / "record", folder / "gate")


def expected(power, at):
    """The acknowledged end of each stream, its committed position, and whether the reader was remembered."""
    ends, committed = dict.fromkeys(STREAMS, 0), dict.fromkeys(STREAMS, 0)
    for stream, end in map(json.loads, power.notes(at, Purpose.GATE_GROUP)):
        ends[stream] = max(ends[stream], end)
    for said in map(json.loads, power.notes(at, Purpose.GATE_RETENTION)):
        committed = said
    return ends, committed, bool(power.notes(at, Purpose.CATALOGUE))


def check(folder, ends, committed, *, remembered):
    """Open what is left: all is there that was acknowledged and not committed, and the log goes on."""
    log = Log(folder, Limits(segment_bytes=12_288), lambda _: None, lambda *_: None)
    try:
        assert not log.damage
        assert not remembered or READER in log.catalogue.readers
        assert not remembered or log.catalogue.schema("reports").equals(SCHEMA)
        for stream, end in ends.items():
            assert log.next(stream) >= end
            held = log.held.streams.get(stream)
            ranges = held.positions.ranges() if held else []
            low = committed[stream]
            if end > low:
                assert held.positions.holds(low, end), (stream, low, end, ranges)
            for first, last in ranges:
                read = [log.read(piece, SCHEMA)[1] for piece in log.pieces(stream, first, last)]
                assert sum(each.num_rows for each in read) == last - first
                assert [n for each in read for n in each.column("number").to_pylist()] == list(
                    range(first, last)
                )
    finally:
        log.close()


def survive(monkeypatch, seed, count):
    memory = Path("/dev/shm")
    base = (memory if memory.is_dir() else Path("/tmp")) / f"penstock-power-{os.getpid()}"
    try:
        power = recorded(base, seed, monkeypatch)
        done = {(each["step"], each["operation"]) for each in power.operations}
        assert {
            (Purpose.CATALOGUE, "rename"),
            (Purpose.GATE_RETENTION, "delete"),
            (Purpose.GATE_SEGMENT, "cut"),
            (Purpose.GATE_GROUP, "sync"),
        } <= done
        for number, (at, chance) in enumerate(losses(power, seed, count)):
            disk = base / "disk"
            disk.mkdir()
            power.disk(at, chance, disk)
            ends, committed, remembered = expected(power, at)
            try:
                check(disk, ends, committed, remembered=remembered)
            except BaseException:
                sys.stderr.write(f"seed {seed}, loss {number} after {at} operations\n")
                raise
            shutil.rmtree(disk)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def test_nothing_acknowledged_is_lost_with_the_power(monkeypatch):
    seed = random.SystemRandom().randint(0, 10**6)
    sys.stderr.write(f"seed {seed}\n")
    survive(monkeypatch, seed, 250)


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_with_the_power_in_many_runs(monkeypatch):
    for seed in range(20):
        survive(monkeypatch, seed, 1000)
