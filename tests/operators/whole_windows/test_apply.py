"""What a user may give to apply(), and what a function may return."""

import json

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from operators.contract import KernelRun
from penstock.compile import explain
from penstock.errors import BadApply, BadName
from penstock.operators.kernel import Channel, StagePosition
from penstock.operators.whole_windows.kernel import calls_for
from penstock.query import Query
from penstock.routing import Batches, WindowChannels, WindowShape
from penstock.state import ChannelStore

EVENTS = ps.stream("events", "time timestamp, k bigint, n bigint", time="time")
ROWS = [{"time": time, "k": time % 2, "n": time} for time in range(6)]


def run(function, tmp_path, schema="n bigint", *, rows=ROWS, by=()):
    grouped = EVENTS.group_by(*by) if by else EVENTS
    relation = grouped.window("4 us", slide="2 us").apply(function, schema)
    return sorted(KernelRun(relation, tmp_path).run([[rows]], delay=0))


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: {"n": rows.num_rows},
        lambda rows: {"n": [rows.num_rows]},
        lambda rows: {"n": pa.array([rows.num_rows])},
        lambda rows: {"n": pa.scalar(rows.num_rows), "more": "x"},
        lambda rows: {"n": np.array([rows.num_rows], np.int8)},
        lambda rows: pa.table({"n": [rows.num_rows]}),
        lambda rows: pa.record_batch({"n": pa.array([rows.num_rows], pa.int16())}),
    ],
)
def test_a_function_returns_a_table_or_columns_or_values(made, tmp_path):
    assert run(made, tmp_path) == [(-2, 2, 2), (0, 4, 4), (2, 6, 4), (4, 8, 2)]


def test_a_window_may_have_no_result_or_many(tmp_path):
    found = run(lambda rows: {"n": rows["n"].to_pylist()[2:]}, tmp_path)
    assert found == [(0, 4, 2), (0, 4, 3), (2, 6, 4), (2, 6, 5)]


def test_a_function_of_two_arguments_is_told_the_window(tmp_path):
    def told(window, rows):
        return {"text": f"{window.start.microsecond}-{window.end.microsecond} {window.keys} {rows.num_rows}"}

    found = run(told, tmp_path, "text string", rows=ROWS[:2], by=["k"])
    assert found[-2:] == [(0, 4, 0, "0-4 {'k': 0} 1"), (0, 4, 1, "0-4 {'k': 1} 1")]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda _: None, "returned NoneType; return a pyarrow.Table, or a dict of columns"),
        (lambda _: {"m": [1]}, "returned no column 'n'; its schema has n"),
        (lambda _: {"n": ["many"]}, "returned 'n', which cannot be held as declared"),
        (lambda _: {"n": [1], "m": [1, 2]}, "columns of different lengths"),
        (lambda _: pa.table({"n": ["many"]}), "cannot be held as declared"),
        (lambda _: 1 // 0, r"raised ZeroDivisionError: .* for WindowInfo\(start=.*; correct the function"),
    ],
)
def test_what_cannot_be_used_is_told_with_the_function(made, message, tmp_path):
    with pytest.raises(BadApply, match=message):
        run(made, tmp_path)


def test_the_rows_of_a_window_for_which_the_function_raises_can_be_set_aside(tmp_path):
    def fussy(rows):
        return {"n": [10 // (rows["n"][0].as_py() - 2)]}

    held = KernelRun(EVENTS.window("2 us").apply(fussy, "n bigint"), tmp_path)
    made, refused = [], []
    rows = pa.table({"_ps_time": [0, 1, 2, 3, 4], "k": [0] * 5, "n": [0, 1, 2, 3, 4]})
    positions = [StagePosition((0,), 0, {"first_open": 0}), StagePosition((6,), 6, {"first_open": 3})]
    store = ChannelStore(held.segments, "e0", ())
    refuse = lambda reason, record: refused.append((reason, json.loads(record)["n"]))  # noqa: E731 -- a recorder
    held.kernel.step(Channel(0, (rows,), "rows", store, *positions, False, made.append, refuse))
    assert pa.concat_tables(made)["n"].to_pylist() == [-5, 5]
    assert [n for _, n in refused] == [2, 3]
    assert "apply(fussy) raised ZeroDivisionError" in refused[0][0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"function": len, "partitioning": "panes"}, "partitioning='panes'; give one of auto, keys"),
        ({"function": len, "partitioning": "keys"}, "without a key"),
        ({"function": len, "partitioning": "windows", "batch": 3}, "goes with partitioning='batches'"),
        ({"function": len, "batch": 0}, "batch=0; give a whole number"),
        ({"function": 3}, "apply\\(\\) got 3"),
        ({"function": KernelRun}, "give a function"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(given, message):
    with pytest.raises(BadApply, match=message):
        EVENTS.window("4 us").apply(schema="n bigint", **given)


def test_names_of_bounds_and_windows_of_other_kinds_are_refused():
    with pytest.raises(BadName, match="window_start"):
        EVENTS.window("4 us").apply(len, "window_start bigint")
    with pytest.raises(BadApply, match="give one window"):
        EVENTS.cumulate("4 us", "2 us").apply(len, "n bigint")
    with pytest.raises(BadApply, match="lateness or early"):
        EVENTS.window("4 us", lateness="1 us").apply(len, "n bigint")


@pytest.mark.parametrize(
    ("windowed", "given", "said"),
    [
        (EVENTS.window("4 us"), {}, "by window: window j"),
        (EVENTS.window("4 us", "2 us"), {}, "by batches of a size that follows from measured costs"),
        (EVENTS.window("4 us", "2 us"), {"partitioning": "windows"}, "on channel j mod N; as asked for"),
        (EVENTS.window("4 us", "2 us"), {"batch": 7}, "of B = 7 windows, as asked for"),
        (EVENTS.group_by("k").window("4 us", "2 us"), {}, "by key: all windows of a key"),
        (EVENTS.group_by("k").window("4 us", "2 us"), {"partitioning": "batches"}, "by batches of a size"),
    ],
)
def test_explain_says_how_windows_are_shared_out_and_why(windowed, given, said):
    text = explain(Query((windowed.apply(len, "n bigint", **given),)))
    assert said in text


def test_a_gap_of_ages_costs_nothing():
    times = np.array([0, 10**15])
    calls = calls_for(WindowShape(4, 2), times, np.zeros(2, np.int64), None, 10**15)
    assert [each.begins for each in calls] == [-2, 0, 10**15 - 2, 10**15]


def test_a_channel_is_called_for_its_own_windows():
    shape = WindowShape(4, 2)
    times, keys = np.arange(20), np.zeros(20, np.int64)
    windows = WindowChannels(shape, Batches(2), 3)
    found = [
        each.begins for channel in range(3) for each in calls_for(shape, times, keys, 0, 10, windows, channel)
    ]
    assert sorted(found) == list(range(0, 20, 2))
