"""Payloads through an exchange: any order of arrival gives one order, in memory and on the local disk."""

import random

import pyarrow as pa
import pytest

from penstock.columns import TIME
from penstock.runtime.dataflow import payloads
from penstock.runtime.dataflow.payloads import Inbox, Payload, TaskId, new_task, once


def table(*numbers):
    return pa.table({"n": pa.array(numbers, pa.int64()), "s": [f"text {each}" for each in numbers]})


def payload(rows, task, number=1, **more):
    fields = {"stage": 3, "channel": 5, "port": 1, "formed": False, "hop": 1} | more
    return Payload.of(rows, **fields, task=task, number=number)


def numbers(inbox):
    return [number for each in inbox.payloads() for number in each.rows()["n"].to_pylist()]


@pytest.mark.parametrize(
    "more", [{}, {"formed": True, "hop": 0}, {"stage": 65_535, "channel": 2**20, "port": 0}]
)
def test_a_payload_survives_its_bytes(more):
    task = TaskId(7, 2**31, "0123abcd")
    given = payload(table(1, 2, 3), task, 2**30, **more)
    found = Payload.from_bytes(given.to_bytes())
    for name in ("stage", "channel", "port", "formed", "hop", "task", "number"):
        assert getattr(found, name) == getattr(given, name)
    assert found.rows().equals(table(1, 2, 3))


def test_rows_of_no_columns_and_of_nested_ones_survive():
    task = new_task(0, 0)
    nested = pa.table(
        {"a": [[1, None], None], "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8()))}
    )
    for rows in (nested, nested.slice(1), table()):
        assert Payload.from_bytes(payload(rows, task).to_bytes()).rows().equals(rows)


def test_attempts_of_a_task_have_one_place_and_different_marks():
    one, other = new_task(2, 9), new_task(2, 9)
    assert one.place == other.place == (2, 9)
    assert one.attempt != other.attempt


@pytest.mark.parametrize("held", [0, 3_000, 2**20])
@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_arrival_gives_one_order(monkeypatch, held, seed):
    """All on disk, some of them, none."""
    monkeypatch.setattr(payloads, "_HELD", held)
    tasks = [TaskId(level, number, f"{level}{number:07d}") for level in (0, 2) for number in (1, 10, 2)]
    sent = [
        payload(table(*range(100 * place, 100 * place + 3 * number)), task, number)
        for place, task in enumerate(tasks)
        for number in range(1, 12)
    ]
    random.Random(seed).shuffle(sent)
    inbox = Inbox()
    for each in sent:
        inbox.add(Payload.from_bytes(each.to_bytes()))
    places = [(each.task.place, each.number) for each in inbox.payloads()]
    assert places == sorted(places)
    assert len(places) == len(sent)
    # Level, then number of the task, then number of the payload.
    found = numbers(inbox)
    order = [0, 2, 1, 3, 5, 4]
    assert found == [
        100 * place + each for place in order for number in range(1, 12) for each in range(3 * number)
    ]
    assert inbox.consumed == {task.place: task.attempt for task in tasks}
    assert numbers(inbox) == found


def test_spilled_rows_lie_as_arrow_wants_them(monkeypatch):
    """Arrow reads numbers in place: at an odd address some of its kernels are slow, others fail."""
    monkeypatch.setattr(payloads, "_HELD", 0)
    inbox = Inbox()
    for number in range(1, 6):
        inbox.add(payload(table(*range(number)), new_task(0, 0), number))
    for each in inbox.payloads():
        for column in each.rows().columns:
            for buffer in column.chunk(0).buffers():
                assert buffer is None or buffer.address % 8 == 0


def test_an_empty_inbox_has_nothing():
    assert list(Inbox().payloads()) == []


def test_the_event_time_under_another_name_is_sent_once_and_comes_back():
    stamps = pa.array([5, 7, 9], pa.timestamp("us", "UTC"))
    rows = pa.table({"sent": stamps, TIME: stamps.cast(pa.int64()), "n": [1, 2, 3]})
    assert once(rows).column_names == [TIME, "n"]
    arrived = Payload.from_bytes(payload(once(rows).slice(1), new_task(0, 1)).to_bytes()).rows()
    assert arrived.equals(rows.slice(1))
    other = pa.table({"sent": pa.array([5, 7, 9], pa.timestamp("us", "UTC")), TIME: [5, 7, 9]})
    assert once(other) is other
    several = pa.concat_tables([rows, rows.slice(1)])
    assert once(several).column_names == [TIME, "n"]
    turned = rows.set_column(0, "sent", [stamps.take(pa.array([2, 1, 0]))])
    assert once(pa.concat_tables([rows, turned])).num_columns == 3
