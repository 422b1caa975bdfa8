"""What every stateful operator promises: the results of a batch over all accepted rows, nothing twice.

However the rows arrive and epochs are cut, wherever state moves, whatever is replayed. A failure prints what
replays it.
"""

import tempfile
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from distribution.drawing import mergeable
from operators.cases import CASES, LEFT, RIGHT
from operators.contract import KernelRun, added_up, described
from penstock.operators import Operator
from penstock.operators.exchange import KEY, TIME
from penstock.runtime.dataflow.ports import port_map

over_all = pytest.mark.parametrize("name", CASES)


def epochs_of(case):
    return st.lists(st.tuples(*(st.lists(rows, max_size=9) for rows in case.rows)), min_size=1, max_size=6)


def thinned(epochs):
    """The rows that are the first of their time in their port."""
    seen, found = [set() for _ in epochs[0]], []
    for epoch in epochs:
        found.append([])
        for times, rows in zip(seen, epoch, strict=True):
            fresh = [row for row in rows if row["time"] not in times and not times.add(row["time"])]
            found[-1].append(fresh)
    return found


def accepted(case, epochs, delay):
    """The rows of each port that are not late, by the definition of lateness; and the end of everything."""
    kept, latest = tuple([] for _ in epochs[0]), [None] * len(epochs[0])
    for epoch in epochs:
        frontiers = tuple(None if each is None else each - delay for each in latest)
        for port, rows in enumerate(epoch):
            floor = case.late_below(frontiers, port)
            dated = {"closed": frontiers[port]} if case.dated else {}
            kept[port].extend(row | dated for row in rows if floor is None or row["time"] >= floor)
            times = [row["time"] for row in rows] + ([] if latest[port] is None else [latest[port]])
            latest[port] = max(times, default=None)
    return kept, 1 + max((each for each in latest if each is not None), default=0)


def undated(kept):
    """The rows as they came."""
    return tuple([{k: v for k, v in row.items() if k != "closed"} for row in rows] for rows in kept)


def as_text(results):
    return sorted(map(repr, results))


def settled(case, results):
    """What results add up to, where they are changes."""
    return results if case.group is None else added_up(results, case.group)


@over_all
@settings(max_examples=4)
@given(data=st.data(), delay=st.integers(0, 50), channels=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_results_are_those_of_a_batch_over_the_accepted_rows(name, data, delay, channels, seed):
    case = CASES[name]
    epochs = data.draw(epochs_of(case))
    if case.distinct:
        epochs = thinned(epochs)
    with tempfile.TemporaryDirectory() as folder:
        run = KernelRun(case.relation, folder, channels, seed, restless=True)
        found = run.run(epochs, delay)
    rows, end = accepted(case, epochs, delay)
    assert run.accepted == undated(rows)
    assert as_text(settled(case, found)) == as_text(case.oracle(rows, end))


@over_all
@settings(max_examples=3)
@given(data=st.data(), delay=st.integers(0, 50), seed=st.integers(0, 10**6))
def test_many_epochs_in_channels_give_what_one_epoch_in_one_channel_gives(name, data, delay, seed):
    case = CASES[name]
    epochs = data.draw(epochs_of(case))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        run = KernelRun(case.relation, one, 3, seed, restless=True)
        found = run.run(epochs, delay)
        whole = KernelRun(case.relation, other).run([run.accepted], 0)
    found, whole = settled(case, found), settled(case, whole)
    if case.dated:
        # In one epoch nothing is late, so rows that were late for some of their windows count in all of them.
        assert {row[:2] for row in found} <= {row[:2] for row in whole}
    else:
        assert as_text(found) == as_text(whole)


@dataclass
class DividedRun(KernelRun):
    """A product with so few last rows that a run would leave it in one channel."""

    def __post_init__(self):
        super().__post_init__()
        self.use(replace(self.kernel, divided=True))
        self.single = False
        self.begin(self.channels)


@settings(max_examples=15)
@given(data=st.data(), delay=st.integers(0, 50), channels=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_a_product_with_the_last_rows_gives_the_same_in_any_number_of_channels(data, delay, channels, seed):
    case = CASES["product with few last rows"]
    epochs = thinned(data.draw(epochs_of(case)))
    with tempfile.TemporaryDirectory() as folder:
        run = DividedRun(case.relation, folder, channels, seed, restless=True)
        found = run.run(epochs, delay)
    rows, end = accepted(case, epochs, delay)
    assert as_text(found) == as_text(case.oracle(rows, end))


@dataclass
class HostedRun(KernelRun):
    """A join in the channels of a stage that partitions its rows by one of the two keys."""

    def __post_init__(self):
        super().__post_init__()
        self.use(self.kernel.hosted(("v",)))

    def _any_spread(self, channels, keys):
        """Other stages rely on whole keys."""


@pytest.mark.parametrize("name", ["full join", "full join by window"])
@settings(max_examples=8)
@given(data=st.data(), delay=st.integers(0, 50), channels=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_a_join_in_the_channels_of_another_stage_gives_what_it_gives_in_its_own(
    name, data, delay, channels, seed
):
    case = CASES[name]
    keys = {"k": "k", "v": "w"}
    if name == "full join":
        relation = LEFT.join(RIGHT, keys, within="15 us", how="full")
    else:
        relation = LEFT.join(RIGHT, keys, window=ps.window("8 us"), how="anti")
    epochs = data.draw(epochs_of(case))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        run = HostedRun(relation, one, channels, seed, restless=True)
        found = run.run(epochs, delay)
        whole = KernelRun(relation, other).run([run.accepted], 0)
    assert run.accepted == accepted(case, epochs, delay)[0]
    assert as_text(found) == as_text(whole)


def test_a_port_in_the_channels_of_another_stage_has_the_keys_of_that_stage():
    relation = LEFT.select("k", "v").join(RIGHT.select("k", "w"), "k", within="15 us")
    kernel = relation.operator.compile("timestamp", [described(each.schema) for each in relation.inputs])
    kernel = kernel.hosted(("k",))
    given = [
        pa.table({"k": pa.array([1, None], pa.int64()), "v": [5, 6], TIME: [3, 4]}),
        pa.table({"w": [7], "k": [1], TIME: [9]}),
    ]
    ports = [port_map(kernel, 0, port, rows.schema) for port, rows in enumerate(given)]
    found = [each.rows(rows) for each, rows in zip(ports, given, strict=True)]
    # A row without a key has no partner in an inner join.
    assert [each.num_rows for each in found] == [1, 1]
    assert found[1].select(["w", KEY.format(0), TIME]).to_pylist() == [{"w": 7, KEY.format(0): 1, TIME: 9}]


@over_all
def test_state_stays_small_over_many_epochs_and_moves(name, tmp_path):
    case = CASES[name]
    run = KernelRun(case.relation, tmp_path, 2, seed=3, restless=True)
    row = {"k": 1, "s": "a", "d": 1.5, "v": 2, "n": 3, "w": 4, "wait": 5}
    most = []
    for epoch in range(16):
        new = [[row | {"time": 10 * epoch + place, "k": place} for place in range(3)] for _ in case.rows]
        run.step(new, (10 * epoch,) * len(case.rows))
        most.append(max(map(len, run.record.channels)))
    assert max(most) <= 30
    run.drain(160)
    kept_in_first = (
        not run.kernel.exchanges[0].keys and mergeable(run.kernel.distribution) and case.group == 0
    )
    assert run.moved or run.single or kept_in_first or not run.kernel.tables
    assert as_text(settled(case, run.results)) == as_text(case.oracle(run.accepted, 160))


def test_every_operator_with_state_has_a_case():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    made = {type(case.relation.operator).__qualname__ for case in CASES.values()}
    own = {each for each in below(Operator) if each.__module__.startswith("penstock.")}
    assert {each.__qualname__ for each in own if each.stateful} == made
