"""The two forms of a keyed function are one: what a processor does at once, visits do one by one."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.process import NO_TIMER
from penstock.operators.process.events import Events, Horizon
from penstock.operators.process.stepping import stepped
from penstock.operators.process.touched import Shapes, Touched
from penstock.operators.process.visiting import visited
from processes import Sessions, visit_session

SHAPES = Shapes(*(pa.schema([("n", pa.int64()), ("total", pa.int64())]),) * 2, pa.timestamp("us", tz="UTC"))
TIMES = st.lists(st.integers(10, 60), max_size=5).map(sorted)


@given(
    st.lists(st.tuples(TIMES, st.integers(5, 70) | st.just(NO_TIMER)), min_size=1, max_size=4),
    st.integers(1, 20),
    st.integers(0, 90),
    st.booleans(),
)
def test_a_processor_and_visits_give_the_same(keys, timeout, frontier, ended):
    # A key is there because it has a row or because its timer fires.
    keys = [each for each in keys if each[0] or each[1] <= (NO_TIMER - 1 if ended else frontier)]
    if not keys:
        return
    times = np.array([time for own, _ in keys for time in own], np.int64)
    groups = np.repeat(np.arange(len(keys)), [len(own) for own, _ in keys])
    known = np.array([timer != NO_TIMER for _, timer in keys])
    numbers = [3 if each else None for each in known]
    touched = Touched(
        rows=pa.table({"v": pa.array(times % 7)}),
        events=Events(np.arange(len(times)), groups, times),
        keys=pa.table({"k": np.arange(len(keys))}),
        state=pa.table({"n": numbers, "total": numbers}, schema=SHAPES.state),
        known=known,
        timers=np.array([timer for _, timer in keys], np.int64),
    )
    horizon = Horizon(frontier, ended)
    one = stepped(Sessions(), touched, timeout, horizon, SHAPES)
    other = visited(visit_session, touched, timeout, horizon, SHAPES)
    assert told(one) == told(other)


def told(left):
    results = zip(
        left.groups.tolist(), left.times.tolist(), *(c.to_pylist() for c in left.results.columns), strict=True
    )
    states = [row if known else None for row, known in zip(left.state.to_pylist(), left.known, strict=True)]
    return sorted(results), states, left.timers.tolist()
