import numpy as np
import pytest

from penstock.errors import BadRouting
from penstock.routing.longest_first import longest_first_unlike
from penstock_lab.algorithms.shuffle_messages import Matrices, ShuffleSettings, SyncReply, SyncRequest
from penstock_lab.algorithms.shuffle_scheduler import SchedulerPhase, SchedulerState

CHEAP, DEAR = np.uint64(3), np.uint64(2**63 + 11)


def items(*numbers):
    return np.array(numbers, np.uint64)


def report(channel, cheap=1.0, dear=10.0):
    sketch = ShuffleSettings().sketch()
    sketch.update(items(CHEAP, DEAR), np.array([cheap, dear]))
    return Matrices(channel, sketch)


def running(channels=2, **options):
    """A scheduler that has all reports and replies, and no work on any channel."""
    scheduler = SchedulerState(channels, **options)
    for channel in range(channels):
        scheduler.receive(report(channel))
    for request in scheduler.submit(np.full(channels, CHEAP)).requests:
        scheduler.receive(SyncReply(request.channel, request.round, -request.estimate))
    assert scheduler.phase is SchedulerPhase.RUN
    return scheduler


def test_the_states_of_figure_7a_in_turn():
    scheduler = SchedulerState(channels=2)
    assert scheduler.submit(items(CHEAP, CHEAP, CHEAP)).channels.tolist() == [0, 1, 0]
    scheduler.receive(report(0))
    assert scheduler.phase is SchedulerPhase.ROUND_ROBIN
    scheduler.receive(report(1))
    assert scheduler.phase is SchedulerPhase.SEND_ALL
    assert scheduler.submit(items(DEAR)).requests == (SyncRequest(0, 1, ordinal=3, estimate=10.0),)
    assert scheduler.phase is SchedulerPhase.SEND_ALL
    assert scheduler.submit(items(CHEAP)).requests == (SyncRequest(1, 1, ordinal=2, estimate=1.0),)
    assert scheduler.phase is SchedulerPhase.WAIT_ALL
    scheduler.receive(SyncReply(0, 1, drift=2.0))
    assert scheduler.phase is SchedulerPhase.WAIT_ALL
    scheduler.receive(SyncReply(1, 1, drift=1.0))
    assert scheduler.phase is SchedulerPhase.RUN
    assert scheduler.work.tolist() == [12.0, 2.0]


def test_while_waiting_tuples_go_where_the_least_work_is():
    scheduler = SchedulerState(channels=2)
    scheduler.receive(report(0))
    scheduler.receive(report(1))
    assert scheduler.submit(items(DEAR, CHEAP, CHEAP, CHEAP)).channels.tolist() == [0, 1, 1, 1]
    assert scheduler.work.tolist() == [10.0, 3.0]


def test_running_is_greedy_with_the_estimates_of_each_channel():
    scheduler = running()
    scheduler.receive(report(1, cheap=4.0))
    scheduler.submit(items(CHEAP, CHEAP))
    assert scheduler.work.tolist() == [1.0, 4.0]
    assert scheduler.submit(items(CHEAP, CHEAP, CHEAP, CHEAP)).channels.tolist() == [0, 0, 0, 0]


def test_a_new_report_starts_a_round_and_voids_old_replies():
    scheduler = running()
    scheduler.receive(report(0))
    assert scheduler.phase is SchedulerPhase.SEND_ALL
    scheduler.submit(items(CHEAP, CHEAP))
    for channel in (0, 1):
        scheduler.receive(SyncReply(channel, round=1, drift=99.0))
    assert scheduler.phase is SchedulerPhase.WAIT_ALL
    assert scheduler.work.max() < 99.0


def test_the_correction_keeps_what_was_placed_since_the_request():
    scheduler = running()
    scheduler.receive(report(0))
    first, second = scheduler.submit(items(CHEAP, CHEAP)).requests
    scheduler.submit(items(DEAR, DEAR))
    scheduler.receive(SyncReply(0, first.round, drift=5.0))
    scheduler.receive(SyncReply(1, second.round, drift=0.0))
    assert scheduler.work.tolist() == [1.0 + 10.0 + 5.0, 1.0 + 10.0]


def test_a_whole_epoch_can_be_placed_longest_first():
    scheduler = running(place=longest_first_unlike)
    epoch = items(*[CHEAP] * 10, DEAR)
    assert scheduler.submit(epoch).channels.tolist() == [1] * 10 + [0]


@pytest.mark.parametrize("sent", [1, 2])
def test_a_barrier_evens_the_work_and_voids_replies_from_before(sent):
    scheduler = running()
    scheduler.receive(report(0))
    requests = scheduler.submit(items(DEAR, CHEAP)[:sent]).requests
    scheduler.barrier()
    for request in requests:
        scheduler.receive(SyncReply(request.channel, request.round, drift=99.0))
    assert scheduler.work.tolist() == [0.0, 0.0]
    assert scheduler.phase is (SchedulerPhase.RUN if sent == 2 else SchedulerPhase.SEND_ALL)


def test_no_tuples_change_nothing():
    scheduler = running()
    assert len(scheduler.submit(items()).channels) == 0
    assert scheduler.phase is SchedulerPhase.RUN


def test_a_message_of_a_channel_that_is_not_there_is_refused():
    with pytest.raises(BadRouting, match="there are 2 channels"):
        SchedulerState(2).receive(report(2))
