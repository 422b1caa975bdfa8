"""Runs over gates: the frontier of each stream, secrets, errors and ends."""

import time
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from ingest.gate_processes import free_port
from penstock.control.admission import AdmissionSetup
from penstock.errors import BadSource, GateAway
from penstock.ingest import Client, Directory, Gate

SCHEMA = pa.schema([("time", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
COLUMNS = "time timestamp, stream string, n bigint"


@pytest.fixture
def two_gates(tmp_path):
    with Gate("127.0.0.1:0", tmp_path / "a") as one, Gate("127.0.0.1:0", tmp_path / "b") as other:
        yield one, other


def push(gate, stream, first, last):
    """A row for every second from first to last."""
    n = np.arange(first, last)
    rows = pa.record_batch([pa.array(n * 1_000_000, SCHEMA.field("time").type), n], schema=SCHEMA)
    with Client(gate.address, f"reports/{stream}", SCHEMA, sequence=first) as client:
        client.push(rows)


def counts(address, columns=COLUMNS, **options):
    source = ps.gates(address, stream_column="stream", **options)
    reports = ps.stream("reports", columns, time="time", key="stream", source=source)
    return reports.group_by("stream").window("10 seconds").agg(rows=ps.count(), total=ps.sum("n"))


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def until(ready, seconds=120):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_windows_wait_for_the_slowest_stream_and_gates_hear_what_is_done(spark, two_gates, tmp_path):
    #   a ──────────────30──▶     b ──12──▶ ─ ─ ─ ─25──▶
    one, other = two_gates
    began = time.time()
    push(one, "a", 0, 30)
    push(other, "b", 0, 12)
    found = []
    query = counts(f"{one.address},{other.address}", token="sesame", rows_per_epoch=35)
    sink = ps.each(lambda table, _: found.extend(table.select(["stream", "rows", "total"]).to_pylist()))
    with query.start(sink, checkpoint=tmp_path / "state", session=spark) as run:
        until(lambda: sum(each.rows for each in run.progress) == 42)
        assert len(run.progress) == 2
        first = {"reports/a": (10, 45), "reports/b": (10, 45)}
        assert {each["stream"]: (each["rows"], each["total"]) for each in found} == first
        # Rows have the time at which their gate got them, not that of the epoch or their own.
        latency = run.latency
        assert latency is not None
        assert latency.results == 1
        assert run.progress[0].seconds < latency.p50 < time.time() - began
        assert [each.waiting for each in run.progress] == [7, 0]
        push(other, "b", 12, 25)
        until(lambda: run.counts.rows == 55)
        until(lambda: one.state.readers.positions)
    assert sorted((each["stream"], each["total"]) for each in found[2:]) == [
        ("reports/a", 145),
        ("reports/b", 145),
    ]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"sesame" in path.read_bytes()]


def test_a_promise_closes_a_window_within_two_epochs_and_rows_below_it_are_late(spark, two_gates, tmp_path):
    #   a ──────30 · promise 100──▶     b ──12 · promise 30 · 5 rows from 12──▶
    gate, _ = two_gates
    push(gate, "a", 0, 30)
    push(gate, "b", 0, 12)
    found = []
    sink = ps.each(lambda table, _: found.extend((row["stream"], row["total"]) for row in table.to_pylist()))
    with counts(gate.address).start(sink, checkpoint=tmp_path / "state", session=spark) as run:
        until(lambda: [each.rows for each in run.progress] == [42])
        assert sorted(found) == [("reports/a", 45), ("reports/b", 45)]
        with Client(gate.address, "reports/b", SCHEMA) as client:
            client.promise(30_000_000)
        until(lambda: run.progress[-1].frontier == at(29))
        assert len(run.progress) <= 1 + 2
        assert sorted(found[2:]) == [("reports/a", 145), ("reports/b", 21)]
        with Client(gate.address, "reports/a", SCHEMA) as client:
            client.promise(100_000_000)
        until(lambda: run.progress[-1].frontier == at(30))
        assert found[4:] == [("reports/a", 245)]
        push(gate, "b", 12, 17)
        until(lambda: run.counts.rows == 47)
        assert (run.counts.late, run.progress[-1].frontier) == (5, at(30))


def test_a_wrong_schema_is_said_in_its_own_words(spark, two_gates, tmp_path):
    gate, _ = two_gates
    push(gate, "a", 0, 30)
    run = counts(gate.address, "time timestamp, stream string, n double").start(
        ps.memory(), checkpoint=tmp_path / "state", session=spark
    )
    with pytest.raises(BadSource, match="column 'n' of inlet 'reports' is bigint, declared is double"):
        run.wait(120)


def test_no_gate_at_all_ends_a_run_in_the_same_words(spark, tmp_path):
    query = counts(f"127.0.0.1:{free_port()}", patience="1 second")
    with pytest.raises(GateAway, match="no gate of inlet 'reports'"):
        query.start(ps.memory(), checkpoint=tmp_path / "state", session=spark).wait(120)


def test_a_run_that_waits_for_a_gate_can_be_stopped(spark, tmp_path):
    query = counts(f"127.0.0.1:{free_port()}", patience="1 hour")
    run = query.start(ps.memory(), checkpoint=tmp_path / "state", session=spark)
    time.sleep(1)
    run.stop()
    assert not run.running


def test_streams_of_a_gate_that_is_away_at_the_first_epoch_are_not_late(spark, tmp_path, caplog):
    """Newcomer 4: the controller knows the stream, which holds the frontier back until its gate is there."""
    address = f"127.0.0.1:{free_port()}"
    with (
        Directory("127.0.0.1:0", tmp_path / "directory", away_seconds=600, poll_seconds=0.05) as directory,
        Gate("127.0.0.1:0", tmp_path / "b") as there,
    ):
        with Gate(address, tmp_path / "a") as away:
            directory.register(address)
            directory.register(there.address)
            push(away, "a", 0, 100)
            push(there, "b", 0, 100)
            until(lambda: sum(each["next"] for each in directory.streams()) == 200)
        with counts(directory.address).start(
            ps.memory(), checkpoint=tmp_path / "state", session=spark
        ) as run:
            until(lambda: sum(each.rows for each in run.progress) == 100)
            first = run.progress[-1]
            assert (first.rows, first.away, first.frontier) == (100, (address,), None)
            assert f"no answer from gate {address}; no tuple yet of reports/a" in caplog.text
            with Gate(address, tmp_path / "a"):
                until(lambda: sum(each.rows for each in run.progress) == 200)
                assert (run.counts.late, run.progress[-1].away) == (0, ())


def test_a_run_and_the_controller_of_its_gates_tell_each_other_what_they_know(spark, two_gates, tmp_path):
    one, _ = two_gates
    setup, heard = AdmissionSetup(period=0.3), []
    with Directory(
        "127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05, admission=setup
    ) as known:
        known.register(one.address)
        with (
            Client(known.address, "reports/a", SCHEMA, {"max_rate": 1e6}) as client,
            counts(known.address).start(
                ps.memory(),
                checkpoint=tmp_path / "state",
                session=spark,
                policy=lambda seen: heard.append(dict(seen.expected)) or (),
            ) as run,
        ):

            def told():
                first = client.sequence
                n = np.arange(first, first + 20)
                column = pa.array(n * 1_000_000, SCHEMA.field("time").type)
                client.push(pa.record_batch([column, n], schema=SCHEMA))
                return any(each and each["reports"].rates[0] > 0 for each in heard)

            until(told)
            (load,) = (load for _, load in known._steering._queries._told.values())
            assert load.row_seconds > 0
            assert run.running
