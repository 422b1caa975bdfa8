from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock_lab.algorithms.shuffle_messages import Matrices, ShuffleSettings, SyncReply, SyncRequest
from penstock_lab.algorithms.shuffle_operator import OperatorPhase, OperatorState

SETTINGS = ShuffleSettings(window=4)
ITEMS = np.array([1, 2, 3, 4], np.uint64)
COSTS = np.array([1.0, 2.0, 3.0, 4.0])


def test_a_steady_operator_reports_every_second_window():
    # tuples   4         8          12        16
    # phase    STABIL.   START      STABIL.   START
    # sent     -         Matrices   -         Matrices
    operator = OperatorState(2, SETTINGS)
    sent = [operator.execute(ITEMS, COSTS) for _ in range(4)]
    assert [len(messages) for messages in sent] == [0, 1, 0, 1]
    assert all(
        isinstance(message, Matrices) and message.channel == 2 for messages in sent for message in messages
    )
    assert sent[1][0].sketch.counts.total == 8


def test_costs_that_change_keep_it_from_reporting():
    operator = OperatorState(0, SETTINGS)
    operator.execute(ITEMS, COSTS)
    assert operator.execute(ITEMS, 2 * COSTS) == []
    assert operator.phase is OperatorPhase.STABILIZING
    # Means fall from 1.5 to 1.33, 1.25 and 1.2 times the first: by 11 %, 6 % and 4 % a look.
    sent = [len(operator.execute(ITEMS, COSTS)) for _ in range(3)]
    assert sent == [0, 0, 1]


def test_a_reply_is_the_true_cost_less_the_estimate():
    operator = OperatorState(1, SETTINGS)
    operator.execute(ITEMS[:3], COSTS[:3])
    request = SyncRequest(channel=1, round=7, ordinal=5, estimate=10.0)
    replies = operator.execute(ITEMS[:2], np.array([5.0, 6.0]), [request])
    assert SyncReply(channel=1, round=7, drift=1.0 + 2.0 + 3.0 + 5.0 + 6.0 - 10.0) in replies


def test_a_barrier_starts_the_sum_anew_but_not_the_count():
    operator = OperatorState(0, SETTINGS)
    operator.execute(ITEMS[:3], COSTS[:3])
    operator.barrier()
    replies = operator.execute(ITEMS[:1], COSTS[:1], [SyncRequest(0, 1, ordinal=4, estimate=0.0)])
    assert replies == [SyncReply(0, 1, drift=1.0)]


@given(st.lists(st.integers(0, 15), max_size=6))
def test_messages_do_not_depend_on_how_tuples_are_cut(cuts):
    rng = np.random.default_rng(7)
    hashes, costs = rng.integers(0, 3, 15).astype(np.uint64), np.ones(15)
    requests = [SyncRequest(0, 1, ordinal, 0.0) for ordinal in (3, 8, 9)]
    whole = OperatorState(0, SETTINGS).execute(hashes, costs, requests)
    operator, pieces, edges = OperatorState(0, SETTINGS), [], sorted({0, *cuts, 15})
    for start, end in pairwise(edges):
        due = [request for request in requests if start < request.ordinal <= end]
        pieces += operator.execute(hashes[start:end], costs[start:end], due)
    assert [type(message) for message in pieces] == [type(message) for message in whole]
    assert [m for m in pieces if isinstance(m, SyncReply)] == [m for m in whole if isinstance(m, SyncReply)]


@pytest.mark.parametrize("request_", [SyncRequest(1, 1, 1, 0.0), SyncRequest(0, 1, 9, 0.0)])
def test_a_request_that_went_astray_is_refused(request_):
    with pytest.raises(BadRouting, match="keep it with its tuple"):
        OperatorState(0, SETTINGS).execute(ITEMS, COSTS, [request_])
