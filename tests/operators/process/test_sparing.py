"""Rows for which a keyed function raises: as if they had never come, and refused with a reason."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from operators.process.test_forms import told
from penstock.errors import BadProcess
from penstock.operators.process import NO_TIMER
from penstock.operators.process.events import Events, Horizon
from penstock.operators.process.sparing import Sparing
from penstock.operators.process.stepping import stepped
from penstock.operators.process.touched import Shapes, Touched
from penstock.operators.process.visiting import visited
from processes import Sessions, Waiting, visit_session

COUNTED = pa.schema([("n", pa.int64()), ("total", pa.int64())])
FIRED = pa.schema([("n", pa.int64()), ("fired", pa.bool_())])
TIME = pa.timestamp("us", tz="UTC")
POISON = -1


def refuse_poison(block):
    if pc.any(pc.equal(block.rows["v"], POISON)).as_py():
        raise ValueError("poison")


class PickySessions(Sessions):
    def step(self, block):
        refuse_poison(block)
        return super().step(block)


class PickyWaiting(Waiting):
    def step(self, block):
        refuse_poison(block)
        return super().step(block)


def picky_visit(key, time, row, state):
    if row is not None and row["v"] == POISON:
        if state is not None:
            state["n"] = 1000  # a trace that must not stay
        raise ValueError("poison")
    return visit_session(key, time, row, state)


def of_processor(processor, timeout, shapes):
    return lambda touched, horizon: stepped(processor, touched, timeout, horizon, shapes)


def of_visits(function, timeout, shapes):
    return lambda touched, horizon: visited(function, touched, timeout, horizon, shapes)


COUNTS, TIMERS = Shapes(COUNTED, COUNTED, TIME), Shapes(FIRED, pa.schema([("n", pa.int64())]), TIME)
FORMS = {
    "a processor with timeouts": (of_processor(PickySessions(), 9, COUNTS), COUNTS),
    "visits with timeouts": (of_visits(picky_visit, 9, COUNTS), COUNTS),
    "a processor with timers": (of_processor(PickyWaiting(), None, TIMERS), TIMERS),
}
ROWS = st.lists(st.tuples(st.integers(10, 60), st.sampled_from([POISON, 1, 2, 5])), max_size=6).map(sorted)
KEYS = st.lists(st.tuples(ROWS, st.integers(5, 70) | st.just(NO_TIMER)), min_size=1, max_size=5)


def touching(keys, shapes):
    """What an epoch brings to keys, each with its rows of time and value, and its timer."""
    rows = [row for own, _ in keys for row in own]
    times = np.array([time for time, _ in rows], np.int64)
    known = np.array([timer != NO_TIMER for _, timer in keys], np.bool_)
    values = [3 if each else None for each in known]
    fired = [False if each else None for each in known]
    columns = {"n": values, "total": values, "fired": fired}
    return Touched(
        rows=pa.table({"v": pa.array([v for _, v in rows], pa.int64()), "wait": pa.array(times % 11)}),
        events=Events(
            np.arange(len(times)), np.repeat(np.arange(len(keys)), [len(own) for own, _ in keys]), times
        ),
        keys=pa.table({"k": np.arange(len(keys))}),
        state=pa.table([columns[name] for name in shapes.state.names], schema=shapes.state),
        known=known,
        timers=np.array([timer for _, timer in keys], np.int64),
    )


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(keys=KEYS, frontier=st.integers(0, 90), ended=st.booleans())
def test_a_refused_row_leaves_no_trace(form, keys, frontier, ended):
    """Defect 27: results, states and timers are those of the rows without the poison."""
    call, shapes = FORMS[form]
    horizon = Horizon(frontier, ended)
    limit = NO_TIMER - 1 if ended else frontier
    clean = [([row for row in own if row[1] != POISON], timer) for own, timer in keys]
    # A key is there because it has a row or because its timer fires.
    keys = [
        (own, timer) for (own, _), (kept, timer) in zip(keys, clean, strict=True) if kept or timer <= limit
    ]
    clean = [(kept, timer) for kept, timer in clean if kept or timer <= limit]
    if not keys:
        return
    refused = []
    found = Sparing(call, form, shapes, lambda reason, record: refused.append((reason, json.loads(record))))
    assert told(found.keys(touching(keys, shapes), horizon)) == told(call(touching(clean, shapes), horizon))
    poison = [(number, row) for number, (own, _) in enumerate(keys) for row in own if row[1] == POISON]
    assert {reason for reason, _ in refused} <= {f"{form} raised ValueError: poison"}
    assert sorted((each["k"], each["v"]) for _, each in refused) == [(key, POISON) for key, _ in poison]


def test_a_key_of_which_every_row_is_refused_stays_as_it_was():
    call, shapes = FORMS["a processor with timeouts"]
    touched = touching([([(20, POISON), (21, POISON)], 70), ([(20, 1)], NO_TIMER)], shapes)
    refused = []
    left = Sparing(call, "f", shapes, lambda *each: refused.append(each)).keys(touched, Horizon(25))
    assert len(refused) == 2
    assert left.state.to_pylist()[0] == {"n": 3, "total": 3}
    assert (left.timers[0], left.known.tolist()) == (70, [True, True])


def test_a_timer_that_fails_is_no_row_s_fault():
    def picky(key, time, row, state):
        if row is None:
            raise ValueError("the timer")
        return ps.Visit({"n": 1, "total": 1})

    touched = touching([([(20, 1), (40, 1)], NO_TIMER)], COUNTS)
    sparing = Sparing(
        of_visits(picky, 9, COUNTS), "picky", COUNTS, lambda *_: pytest.fail("no row is at fault")
    )
    with pytest.raises(
        BadProcess, match=r"picky raised ValueError: the timer for a timer of the key \{'k': 0\}"
    ):
        sparing.keys(touched, Horizon(45))


def test_many_keys_and_one_poison_row_cost_few_calls():
    calls = []

    class Counted(PickySessions):
        def step(self, block):
            calls.append(len(block.known))
            return super().step(block)

    keys = [
        ([(10 + n, POISON if (key, n) == (700, 5) else 1) for n in range(8)], NO_TIMER) for key in range(1000)
    ]
    sparing = Sparing(of_processor(Counted(), 9, COUNTS), "f", COUNTS, lambda *_: None)
    sparing.keys(touching(keys, COUNTS), Horizon(90))
    assert len(calls) < 40
    assert sum(calls) < 4 * 1000
