"""Tasks that run again: what counts of several attempts, and when an epoch has to begin anew."""

import pytest

from penstock.connect import EpochId, Output
from penstock.runtime.dataflow.channels import Receipt
from penstock.runtime.dataflow.payloads import new_task
from penstock.runtime.dataflow.receipts import SentSeen, StreamSeen, TaskFile, TaskReceipt
from penstock.runtime.epoch import Differs, Epoch


@pytest.fixture
def epoch():
    """An epoch of which only the receipts are looked at."""
    return Epoch(None, EpochId(3), None, None, None, {}, {}, {}, None)


def read(number, rows=10):
    """A task that reads has told; every attempt writes a file of its own."""
    task = new_task(0, number)
    return TaskReceipt(
        task,
        streams={"t": StreamSeen(rows, latest=rows)},
        sent={0: SentSeen(rows=rows, tuples=rows)},
        files=(TaskFile("late", "t", Output(task.attempt, 1, 1)),),
    )


def channel(number, *taken):
    """A channel has told, which took rows of these."""
    receipt = Receipt(number, (), (), received=5, tuples=5)
    consumed = {each.task.place: each.task.attempt for each in taken}
    return TaskReceipt(new_task(1, number), channels={0: (receipt,)}, consumed=consumed)


def files(epoch):
    return [each.output.name for each in epoch._files]


def test_of_attempts_in_one_job_the_last_counts(epoch):
    lost, again, other = read(0), read(0), read(1, rows=7)
    epoch._settle([lost, other, again], None)
    assert epoch.seen["t"] == StreamSeen(17, latest=10)
    assert epoch.sent[0].rows == 17
    assert files(epoch) == [again.task.attempt, other.task.attempt]
    epoch._settle([channel(0, again), channel(1, again, other)], None)
    assert [each.channel for each in epoch.tasks[0]] == [0, 1]


def test_a_task_that_ran_again_for_nobody_counts_once(epoch):
    """Its executor was lost when all channels that need its rows had them."""
    known, other = read(0), read(1)
    epoch._settle([known, other], None)
    before = epoch.seen["t"], epoch.sent[0], files(epoch)
    epoch._settle([channel(0, known), read(0), channel(1, other)], None)
    assert (epoch.seen["t"], epoch.sent[0], files(epoch)) == before
    assert len(epoch.tasks[0]) == 2


@pytest.mark.parametrize("told", ["another attempt", "an unknown task"])
def test_rows_of_another_attempt_begin_the_epoch_anew(epoch, told):
    known = read(0)
    epoch._settle([known], None)
    taken = read(0) if told == "another attempt" else read(9)
    with pytest.raises(Differs, match=r"of epoch 3"):
        epoch._settle([taken, channel(0, known), channel(1, taken)], None)


def test_channels_may_run_again_before_the_next_level_takes_their_rows(epoch):
    known = read(0)
    epoch._settle([known], None)
    lost, again = channel(0, known), channel(0, known)
    epoch._settle([lost, again], None)
    assert len(epoch.tasks[0]) == 1
    late = TaskReceipt(new_task(2, 0), consumed={lost.task.place: lost.task.attempt})
    with pytest.raises(Differs):
        epoch._settle([late], None)
