"""Windows that are delivered more than once, on timelines drawn by hand."""

import penstock as ps
from operators.contract import KernelRun

EVENTS = ps.stream("events", "time timestamp, k bigint", time="time")


def run(relation, folder, epochs):
    """The results of each epoch of times of one key, whose frontier is the latest time; then of the drain."""
    running, found, latest = KernelRun(relation, folder), [], None
    for times in epochs:
        latest = max([*times, *([] if latest is None else [latest])])
        before = len(running.results)
        running.step([[{"time": time, "k": 1} for time in times]], (latest,))
        found.append([(row[0], row[1], row[2], row[-1]) for row in running.results[before:]])
    before = len(running.results)
    running.drain(latest + 1)
    return [*found, [(row[0], row[1], row[2], row[-1]) for row in running.results[before:]]]


def test_a_row_within_the_lateness_corrects_a_closed_window(tmp_path):
    #  [0, 10) closes at 10 and is final at 15
    windowed = EVENTS.group_by("k").window("10 us", lateness="5 us").agg(n=ps.count())
    first, again, final, late, rest = run(windowed, tmp_path, [[1, 10], [2, 14], [16], [3]])
    assert first == [("insert", 0, 10, 1)]
    assert again == [("retract", 0, 10, 1), ("update", 0, 10, 2)]
    assert final == late == []
    assert rest == [("insert", 10, 20, 3)]


def test_a_group_that_comes_late_is_inserted(tmp_path):
    windowed = EVENTS.group_by("k").window("10 us", lateness="50 us").agg(n=ps.count())
    _, late, _ = run(windowed, tmp_path, [[25], [3]])
    assert late == [("insert", 0, 10, 1)]


def test_a_result_that_stays_the_same_is_not_corrected(tmp_path):
    windowed = EVENTS.group_by("k").window("10 us", lateness="50 us").agg(top=ps.max("k"))
    first, late, _ = run(windowed, tmp_path, [[3, 25], [4]])
    assert first == [("insert", 0, 10, 1)]
    assert late == []


def test_open_windows_are_delivered_each_time_the_frontier_passes_a_multiple(tmp_path):
    #  every 4: at the frontiers 1, 4 and 10, where it closes; 5 and 6 are in no new round, and 10 tells them
    windowed = EVENTS.group_by("k").window("10 us", early="4 us").agg(n=ps.count())
    found = run(windowed, tmp_path, [[0, 1], [2], [4], [5, 6], [10], [11]])
    assert found[0] == [("insert", 0, 10, 2)]
    assert found[1] == []
    assert found[2] == [("retract", 0, 10, 2), ("update", 0, 10, 4)]
    assert found[3] == []
    assert sorted(found[4]) == [("insert", 10, 20, 1), ("retract", 0, 10, 4), ("update", 0, 10, 6)]
    assert found[5] == []
    assert found[6] == [("retract", 10, 20, 1), ("update", 10, 20, 2)]


def test_a_tuple_counts_in_the_windows_that_are_open(tmp_path):
    #  10 by 5, frontier 10: [0, 10) is closed when 6 comes, [5, 15) is not; 4 has no open window
    counted = {}
    for late in ("count", "drop"):
        windowed = EVENTS.group_by("k").window("10 us", "5 us", late=late).agg(n=ps.count())
        running = KernelRun(windowed, str(tmp_path / late))
        for times in ([8, 10], [6, 4]):
            running.step([[{"time": time, "k": 1} for time in times]], (10,))
        running.drain(11)
        counted[late] = {row[:2]: row[-1] for row in running.results}
        assert len(running.accepted[0]) == (3 if late == "count" else 2)
    assert counted["count"] == {(0, 10): 1, (5, 15): 3, (10, 20): 1}
    assert counted["drop"] == {(0, 10): 1, (5, 15): 2, (10, 20): 1}


def test_panes_are_merged_in_their_order_for_a_class_that_needs_it(tmp_path):
    import pyarrow as pa

    class Path(ps.ArrowAggregate):
        """The digits in the order of time."""

        state = {"path": "string"}  # noqa: RUF012
        result = "string"

        def accumulate(self, groups, n, *columns):
            found = [""] * n
            for group, value in zip(groups.tolist(), columns[0].to_pylist(), strict=True):
                found[group] += str(value % 10)
            return pa.record_batch({"path": pa.array(found)})

        def merge(self, left, right):
            pairs = zip(left["path"].to_pylist(), right["path"].to_pylist(), strict=True)
            return pa.record_batch({"path": pa.array([one + other for one, other in pairs])})

        def finish(self, state):
            return state["path"]

    relation = EVENTS.window("40 us", "1 us").agg(path=Path("k"))
    # Each time comes once, a third of them 20 later than their turn, after nodes have covered their panes.
    times = [time if time % 3 else time - 20 for time in range(100)]
    running = KernelRun(relation, tmp_path)
    for turn, time in enumerate(times):
        running.step([[{"time": time, "k": time}]], (turn - 20,))
    running.drain(100)
    for start, end, path in running.results:
        assert path == "".join(str(time % 10) for time in sorted(times) if start <= time < end)
