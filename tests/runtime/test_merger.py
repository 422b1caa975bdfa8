"""Mergers over files, without Spark: any order of channels, empty windows, readers that are slow or gone."""

import math
import random
import threading

import pyarrow as pa
import pytest

from penstock.connect import EpochId, Output, ResultFile, ResultFormat
from penstock.operators.kernel import WindowEnds
from penstock.routing import realised_disorder
from penstock.runtime import results as reading
from penstock.runtime.dataflow.channels import Receipt
from penstock.runtime.dataflow.payloads import new_task
from penstock.runtime.dataflow.receipts import TaskReceipt
from penstock.runtime.merger import EpochMergers, Merger
from penstock.runtime.results import ResultBuffer, ResultReaders
from penstock.state.storage import Location

SCHEMA = pa.schema([("window_start", pa.timestamp("us", "UTC")), ("k", pa.int64())])
MINUTE = 60_000_000
EPOCH = EpochId(3)


class Taken:
    """A receiver that keeps what it gets."""

    def __init__(self, disorder):
        self.disorder = disorder
        self.tables = []

    def give(self, epoch, rows):
        assert epoch == EPOCH
        self.tables.append(rows)

    @property
    def windows(self):
        found = [set(each["window_start"].cast(pa.int64()).to_pylist()) for each in self.tables]
        assert all(len(each) == 1 for each in found)
        return [each.pop() // MINUTE for each in found]


@pytest.fixture
def files(tmp_path):
    """Writes a file with rows of these windows, and returns its receipt."""
    target = ResultFormat(Location.of(str(tmp_path)), "arrow")

    def write(windows):
        file = ResultFile(target, SCHEMA)
        starts = pa.array([each * MINUTE for each in windows], pa.int64()).cast(SCHEMA.field(0).type)
        file.write(pa.table([starts, pa.array(range(len(windows)), pa.int64())], schema=SCHEMA))
        file.close()
        return [file.receipt()] if windows else []

    write.target = target
    return write


def merger(files, *receivers):
    return Merger(EPOCH, files.target, SCHEMA, ("window_start",), receivers)


def ends(*windows):
    return WindowEnds([(each + 1) * MINUTE for each in windows], MINUTE)


@pytest.mark.parametrize("seed", range(8))
def test_every_row_leaves_once_within_the_disorder_whatever_is_empty_and_whoever_is_first(files, seed):
    chance = random.Random(seed)
    channels, windows = chance.randrange(1, 6), chance.randrange(1, 9)
    has = [sorted(each for each in range(windows) if chance.random() < 0.7) for _ in range(channels)]
    takers = [Taken(k) for k in (0, 1, 3, None)]
    made = merger(files, *takers)
    made.begin(ends(*range(windows)), channels)
    written = [files(each) for each in has]
    order = chance.sample(range(channels), channels)
    told = order[: chance.randrange(channels + 1)]
    for channel in told:
        made.channel(channel, written[channel])
    made.end([(channel, file) for channel, each in enumerate(written) for file in each], windowed=True)
    for each in takers:
        assert sorted(each.windows) == sorted(window for one in has for window in one)
        assert realised_disorder(each.windows) <= (math.inf if each.disorder is None else each.disorder)
    assert made.disorder == max(realised_disorder(each.windows) for each in takers)
    assert takers[-1].windows[: sum(len(has[channel]) for channel in told)] == [
        window for channel in told for window in has[channel]
    ]


def test_an_output_that_nobody_announced_leaves_in_order_at_the_end(files):
    taken = Taken(None)
    made = merger(files, taken)
    made.end([(0, *files([2, 5])), (1, *files([1, 2]))], windowed=True)
    assert taken.windows == [1, 2, 5]


@pytest.mark.parametrize(("k", "batches"), [(0, [[1, 2, 2, 5]]), (1, [[2, 5], [1, 2]])])
def test_results_of_single_tuples_are_in_order_of_time_or_as_channels_finish(files, k, batches):
    taken = Taken(k)
    made = merger(files, taken)
    made.begin(None, 2)
    written = [files([1, 2]), files([2, 5])]
    made.channel(1, written[1])
    made.end([(0, *written[0]), (1, *written[1])], windowed=False)
    found = [each["window_start"].cast(pa.int64()).to_pylist() for each in taken.tables]
    assert found == [[time * MINUTE for time in each] for each in batches]


def test_what_a_receiver_raises_fails_the_epoch(files):
    class Failing(Taken):
        def give(self, *_):
            raise OSError("the disk is full")

    mergers = EpochMergers({0: merger(files, Failing(0))}, {(4, 1): 0})
    (file,) = files([1])
    receipt = Receipt(0, (), (Output(file.name, file.rows, file.bytes, exit=1),))
    with pytest.raises(OSError, match="disk is full"), mergers.running({4: ends(1)}, {4: 1}) as told:
        told(TaskReceipt(new_task(1, 0), channels={4: (receipt,)}))


def test_a_channel_that_runs_twice_gives_its_results_once(files):
    taken, written = Taken(None), [files([1, 2]), files([2])]
    mergers = EpochMergers({0: merger(files, taken)}, {(4, 0): 0})
    with mergers.running({4: ends(1, 2)}, {4: 2}) as told:
        for channel in (1, 1, 0, 1):
            receipt = Receipt(channel, (), tuple(written[channel]))
            told(TaskReceipt(new_task(1, channel), channels={4: (receipt,), 3: (receipt,)}))
    assert taken.windows == [2, 1, 2]


def buffer(**options):
    settings = {"committed": False, "hurried": lambda: False, "warn": print}
    return ResultBuffer(0, **settings | options)


def test_a_slow_reader_holds_up_the_giver_until_it_takes(monkeypatch):
    monkeypatch.setattr(reading, "MOST_HELD", 1)
    held, rows, given = buffer(), pa.table({"n": [1]}), []

    def give():
        for number in range(3):
            held.give(EpochId(number), rows)
            given.append(number)
        held.end(None)

    thread = threading.Thread(target=give)
    thread.start()
    taken = [held.take().epoch.epoch for _ in range(3)]
    thread.join(120)
    assert taken == given == [0, 1, 2]
    assert held.take() is None


def test_a_reader_that_closes_or_a_run_that_stops_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(reading, "MOST_HELD", 1)
    readers, rows = ResultReaders(), pa.table({"n": [1]})
    left, stopping = buffer(), buffer(hurried=lambda: True)
    stream = readers.add(0, left)
    assert readers.of(0) == [left]
    stream.close()
    assert not readers.of(0)
    for each in (left, stopping):
        each.give(EPOCH, rows)
        each.give(EPOCH, rows)
    assert next(stream, None) is None


def test_a_run_that_waits_long_for_a_reader_says_so(monkeypatch):
    monkeypatch.setattr(reading, "MOST_HELD", 1)
    monkeypatch.setattr(reading, "_LONG", 0.05)
    said = threading.Event()
    held = buffer(warn=lambda _: said.set())
    thread = threading.Thread(target=lambda: [held.give(EPOCH, pa.table({"n": [1]})) for _ in range(2)])
    thread.start()
    assert said.wait(120)
    held.close()
    thread.join(120)
    assert not thread.is_alive()
