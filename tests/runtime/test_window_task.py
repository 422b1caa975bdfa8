"""The channel kernel over many epochs, on real files, against recalculating every window."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.compile import compile_aggregation
from penstock.errors import DamagedCheckpoint, MissingSegment
from penstock.runtime.compaction import MOST_SEGMENTS
from penstock.runtime.exits import Exit
from penstock.runtime.results import ResultFormat
from penstock.runtime.storage import Location
from penstock.runtime.window_task import WindowTask

TYPES = {"`key`": "bigint", "`n`": "bigint"}


def plan_of(size, slide):
    stream = ps.stream("t", "time timestamp not null, key bigint not null, n bigint not null", time="time")
    query = stream.group_by("key").window(f"{size} us", slide=f"{slide} us")
    return compile_aggregation(
        query.agg(rows_=ps.count(), total=ps.sum("n"), top=ps.max("n")),
        lambda texts: [(TYPES[text], False) for text in texts],
    )


class Channel:
    """One channel and its folders, epoch after epoch."""

    def __init__(self, plan, folder, combining="map"):
        self.plan, self.combining = plan, combining
        self.state, self.opened, self.epoch = (), None, 0
        self.segments, self.results = Location(f"{folder}/segments"), Location(f"{folder}/results")
        self.segments.make()
        self.results.make()
        self.closed = []

    def step(self, rows, opens):
        """Feed rows of (pane, key, n), then close the windows before `opens`."""
        task = WindowTask(
            plan=self.plan,
            combining=self.combining,
            folder=self.segments,
            label=str(self.epoch),
            state=(self.state,),
            opened=self.opened,
            opens=opens,
            exits=(Exit(None, self.plan.schema, ResultFormat(self.results, "arrow")),),
        )
        receipt, _ = task.work(0, pa.Table.from_batches([self.batch(rows)]))
        for output in receipt.outputs:
            self.closed += pa.ipc.open_file(self.results.input(output.name)).read_all().to_pylist()
        self.state, self.opened, self.epoch = receipt.segments, opens, self.epoch + 1

    def batch(self, rows):
        columns = {"_ps_key0": [key for _, key, _ in rows], "_ps_pane": [pane for pane, _, _ in rows]}
        values = pa.array([n for _, _, n in rows], pa.int64())
        if self.combining == "map":
            columns |= {"rows": [1] * len(rows), "p1": values, "p2": values}
        else:
            columns |= {"_ps_in0": values}
        return pa.RecordBatch.from_pydict(
            {name: pa.array(column, pa.int64()) for name, column in columns.items()}
        )


def recalculated(plan, rows, upto):
    count, total, top = Counter(), Counter(), {}
    for pane, key, n in rows:
        last = plan.shape.last_window_with(pane)
        for window in range(plan.shape.first_window_with(pane), min(last + 1, upto)):
            count[window, key] += 1
            total[window, key] += n
            top[window, key] = max(n, top.get((window, key), n))
    return {cell: (count[cell], total[cell], top[cell]) for cell in count}


def delivered(plan, closed):
    found = {}
    for row in closed:
        window = row["window_start"].timestamp() * 1e6
        cell = (round((window - plan.shape.offset) / plan.shape.slide), row["key"])
        assert cell not in found
        found[cell] = (row["rows_"], row["total"], row["top"])
    return found


@pytest.mark.parametrize("combining", ["map", "channel"])
@settings(max_examples=12)
@given(
    shape=st.sampled_from([(40, 1), (150, 1), (150, 7), (20, 20), (64, 16)]),
    seed=st.integers(0, 2**32),
    pace=st.integers(1, 5),
)
def test_a_long_run_equals_recalculation(combining, shape, seed, pace):
    plan = plan_of(*shape)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        channel = Channel(plan, folder, combining)
        fed, end = [], 0
        for _ in range(60):
            low = 0 if channel.opened is None else max(0, plan.shape.closed_below(channel.opened))
            panes = rng.integers(low, max(low, end) + pace + 2, 30)
            rows = [
                (int(p), int(k), int(n))
                for p, k, n in zip(panes, rng.integers(0, 6, 30), rng.integers(-9, 9, 30), strict=True)
            ]
            fed += rows
            end += pace
            opens = (end - plan.shape.span) // plan.shape.stride + 1
            channel.step(rows, opens if channel.opened is None else max(opens, channel.opened))
            assert len(channel.state) <= 3 * (MOST_SEGMENTS + 2)
        assert delivered(plan, channel.closed) == recalculated(plan, fed, channel.opened)


def test_long_windows_close_from_coarser_nodes(tmp_path):
    plan = plan_of(150, 1)
    channel = Channel(plan, tmp_path)
    for pane in range(300):
        channel.step([(pane, key, 1) for key in range(5)], pane - 148)
    assert {segment.length for segment in channel.state} == {1, 8, 64}


def test_state_does_not_grow_once_windows_close(tmp_path):
    plan = plan_of(20, 1)
    channel = Channel(plan, tmp_path)
    sizes = []
    for pane in range(200):
        channel.step([(pane, key, 1) for key in range(5)], pane - 18)
        sizes.append(sum(segment.rows for segment in channel.state))
    assert max(sizes[150:]) <= max(sizes[50:100])


def test_a_missing_segment_is_named(tmp_path):
    channel = Channel(plan_of(20, 1), tmp_path)
    channel.step([(0, 1, 1)], -19)
    (segment,) = channel.state
    Path(channel.segments.path, segment.name).unlink()
    with pytest.raises(MissingSegment, match=segment.name):
        channel.step([(30, 1, 1)], 10)


def test_a_truncated_segment_is_named(tmp_path):
    channel = Channel(plan_of(20, 1), tmp_path)
    channel.step([(0, 1, 1)], -19)
    (segment,) = channel.state
    path = Path(channel.segments.path, segment.name)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DamagedCheckpoint, match=segment.name):
        channel.step([(30, 1, 1)], 10)


def test_nodes_around_panes_without_nodes_are_not_taken_to_cover_them(tmp_path):
    # Keys of the panes 24 to 31 come once each, so no nodes are worth keeping there; all around they are.
    plan, rows = plan_of(200, 1), []
    channel = Channel(plan, tmp_path)
    for epoch in range(34):
        new = [(pane, pane if epoch == 3 else 0, 1) for pane in range(8 * epoch, 8 * epoch + 8)]
        rows += new
        opens = plan.shape.first_window_with(8 * epoch + 8)
        channel.step(new, opens)
    assert delivered(plan, channel.closed) == recalculated(plan, rows, opens)
