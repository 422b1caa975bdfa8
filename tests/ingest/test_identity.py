"""Logs, readers and controllers have an identity: nothing is skipped, deleted or used again in silence."""

import shutil
import sqlite3
import time

import pyarrow as pa
import pytest

from ingest.drawn_gate import Drawn
from ingest.gate_processes import free_port
from ingest.held import numbers
from ingest.test_inlet_reader import SCHEMA, Leaving, at, push, reader, taken
from penstock.errors import BadGate, BadMessage, DamagedRows, Refused, RowsGone
from penstock.ingest import Client, Directory, Gate, Limits, Security
from penstock.ingest.directory.registry import StreamRegistry
from penstock.ingest.gate import Heartbeat
from penstock.ingest.gate.events import DeleteBelow, DropReader, ReadersListed, ReaderStored, StoreReader
from penstock.ingest.gate.state import Restored
from penstock.ingest.reader.offsets import Offsets
from penstock.ingest.security.access import Access
from penstock.ingest.security.tokens import hash_of
from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import Committed, ForgetReader, NextRequest, ReaderPosition
from penstock.runtime.frontier import Frontier

DDL = "n bigint"
SMALL = Limits(segment_bytes=1)


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def raised(inlet, start):
    """The error that looking on from an offset ends in."""
    end = time.monotonic() + 120
    with pytest.raises(RowsGone) as error:
        until(lambda: inlet.latest(start, None) is None)
    assert time.monotonic() < end
    return str(error.value)


# ---- logs and numbers ----------------------------------------------------------------------------------


def test_a_log_has_one_name_for_its_life(tmp_path):
    names = []
    for folder in ("a", "a", "b"):
        with Gate("127.0.0.1:0", tmp_path / folder) as gate:
            names.append(gate.log.catalogue.log)
    assert names[0] == names[1] != names[2]


def test_numbers_go_on_where_a_gate_lost_its_disk(tmp_path, caplog):
    """Defect 5: with a controller, a client of an emptied gate continues after the highest known number."""
    address = f"127.0.0.1:{free_port()}"
    with Directory("127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05) as directory:
        with Gate(address, tmp_path / "gate") as gate:
            directory.register(address, {"log": gate.log.catalogue.log})
            with Client(directory.address, "reports/a", DDL) as client:
                client.push(numbers(0, 100))
            until(lambda: directory.streams("reports")[0]["next"] == 100)
        shutil.rmtree(tmp_path / "gate")
        with Gate(address, tmp_path / "gate") as gate:
            directory.register(address, {"log": gate.log.catalogue.log})
            with Endpoint(directory.address) as endpoint:
                answer = endpoint.ask(NextRequest(("reports/a",)))
            assert (answer.next, answer.held) == ({"reports/a": 100}, {"reports/a": 0})
            with Client(directory.address, "reports/a", DDL) as client:
                assert client.sequence == 100
    assert "has come with another log" in caplog.text
    assert "continues at 100, but gates hold rows only up to 0" in caplog.text


def test_forgetting_does_not_give_numbers_away_again(tmp_path):
    """Defect 5: neither a forgotten gate nor a forgotten stream lets a client start at 0; it survives."""
    known = StreamRegistry(tmp_path, 5.0, 0.0)
    known.register("a:1", {"log": "one"}, now=0.0)
    known.reader_at("r", "me", {"r/a": 70}, now=0.0)
    known.where({"r/a": None}, now=0.0)
    known.claim(["r/a"], {})
    known.forget_gate("a:1")
    known.forget_streams(["r/a"])
    known.close()
    known = StreamRegistry(tmp_path, 5.0, 0.0)
    assert (known.high("r/a"), known.producer("r/a"), known.forgotten()) == (70, 1, ["a:1", "one"])
    known.close()


def test_a_log_moves_with_its_gate_and_a_copy_is_refused():
    known = StreamRegistry(None, 5.0, 0.0)
    known.register("a:1", {"log": "one"}, now=0.0)
    known.where({"r/a": None}, now=0.0)
    with pytest.raises(BadMessage, match="one folder is a copy"):
        known.register("b:1", {"log": "one"}, now=1.0)
    known.register("b:1", {"log": "one"}, now=100.0)
    assert (known.holders("r/a"), known.where({"r/a": None}, now=100.0)) == ({"b:1"}, {"r/a": "b:1"})


@pytest.mark.parametrize("pushed", [50, 150])
def test_a_reader_raises_where_numbers_are_used_again(tmp_path, pushed):
    """Defect 5: without a controller an emptied gate begins at 0; a reader at 100 says so."""
    gate = Leaving(tmp_path / "gate")
    push(gate, "a", 0, 100)
    end = at(reader(gate), Offsets(), a=100)
    gate.leave()
    shutil.rmtree(tmp_path / "gate")
    gate.come_back()
    push(gate, "a", 0, pushed)
    message = raised(reader(gate), Offsets.unpacked(end.packed()))
    assert f"gate {gate} holds rows 0 to {pushed} of 'reports/a'" in message
    assert "sequence=100" in message
    gate.leave()


def test_a_gate_believes_what_a_reader_has_had(tmp_path):
    """Defect 5: a gate whose disk was emptied continues after the positions that readers tell it."""
    with Gate("127.0.0.1:0", tmp_path) as gate:
        gate.shell.control(Committed("reports", "me", {"reports/a": 100}))
        with Client(gate.address, "reports/a", DDL) as client:
            assert client.sequence == 100


def test_a_hole_that_stays_is_an_error_until_it_is_refilled_or_given_up(two_gates):
    """Defects 4 and 5: the reader names the rows and what to do; refilled rows are read."""
    one, other = two_gates
    push(one.address, "a", 0, 10)
    push(one.address, "a", 20, 30)
    inlet = reader(one.address, other.address, patience=0.3)
    at_hole = at(inlet, Offsets(), a=10)
    message = raised(inlet, at_hole)
    assert "rows 10 to 20 of stream 'reports/a' are on no gate" in message
    assert "--give-up reports/a:10-20" in message
    push(other.address, "a", 10, 20)
    end = at(reader(one.address, other.address), at_hole, a=30)
    assert taken(inlet, at_hole, end) == {"a": list(range(10, 30))}


def test_rows_that_are_given_up_are_skipped_and_a_replay_skips_them_too(tmp_path):
    """Defect 16: the way on where rows are lost; it is remembered by the gate and by the offset."""
    with Gate("127.0.0.1:0", tmp_path / "a") as gate:
        push(gate.address, "a", 0, 10)
        push(gate.address, "a", 20, 30)
    with Gate("127.0.0.1:0", tmp_path / "a", give_up=[("reports/a", 10, 20)]) as gate:
        inlet = reader(gate.address)
        middle = at(inlet, Offsets(), a=10)
    with Gate("127.0.0.1:0", tmp_path / "a") as gate:
        inlet = reader(gate.address)
        end = at(inlet, middle, a=30)
        replayed = Offsets.unpacked(end.packed())
        assert taken(inlet, middle, replayed) == {"a": list(range(20, 30))}
        assert gate.state.next("reports/a") == 30


# ---- damage --------------------------------------------------------------------------------------------


def flip(folder, byte=-100):
    """Change a byte of the rows in the first file of a log."""
    path = min(folder.glob("log/*.log"))
    content = bytearray(path.read_bytes())
    content[content.index(b"PSR1") + 4096 + byte] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_damaged_rows_are_read_from_another_gate(tmp_path, elsewhere):
    """Defect 16: damage in one gate ends a run only if no other gate holds the rows."""
    with Gate("127.0.0.1:0", tmp_path / "a") as one:
        push(one.address, "a", 0, 400)
        push(one.address, "a", 400, 450)
    flip(tmp_path / "a")
    with Gate("127.0.0.1:0", tmp_path / "a") as one, Gate("127.0.0.1:0", tmp_path / "b") as other:
        if elsewhere:
            push(other.address, "a", 0, 400)
        inlet = reader(one.address, other.address)
        end = at(inlet, Offsets(), a=450)
        parts = [part for task in inlet.tasks(Offsets(), end, 3) for part in task]
        assert {part.gate for part in parts} <= {one.address, other.address}
        if elsewhere:
            assert taken(inlet, Offsets(), end) == {"a": list(range(450))}
        else:
            with pytest.raises(
                DamagedRows, match=r"row 0 of stream 'reports/a' is damaged at gate.*give them up"
            ):
                taken(inlet, Offsets(), end)


# ---- readers -------------------------------------------------------------------------------------------


def test_nothing_is_deleted_before_the_controller_has_listed_the_readers():
    """Defect 7: a gate that joins hears of a reader that is down before it deletes what another has read."""
    gate = Drawn(restored=Restored(awaits_readers=True))
    gate.feed(ReaderStored("r", "fast"))
    assert gate.feed(Committed("r", "fast", {"r/a": 7})) == []
    listed = ReadersListed((("r", "down"), ("r", "fast")))
    assert gate.feed(listed) == [StoreReader("r", "down")]
    gate.feed(ReaderStored("r", "down"))
    assert gate.feed(listed) == []
    (delete,) = gate.feed(Committed("r", "fast", {"r/a": 7}))
    assert delete == DeleteBelow({("r", "fast"): {"r/a": 7}, ("r", "down"): {}})
    forgotten = gate.feed(ReadersListed((("r", "fast"),), (("r", "down"),)))
    assert forgotten == [DropReader("r", "down"), DeleteBelow({("r", "fast"): {"r/a": 7}})]


def test_a_gate_that_joins_while_a_run_is_down_keeps_its_rows(tmp_path):
    """Defect 7 over sockets: one reader is down when a gate joins; another commits everything there."""
    with (
        Directory("127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05) as directory,
        Gate("127.0.0.1:0", tmp_path / "a", limits=SMALL) as first,
    ):
        beats = [Heartbeat(directory.address, first)]
        push(first.address, "a", 0, 10)
        down = reader(directory.address, name="down")
        middle = at(down, Offsets(), a=10)
        down.commit(middle)
        with Gate("127.0.0.1:0", tmp_path / "b", limits=SMALL, awaits_readers=True) as joined:
            beats.append(Heartbeat(directory.address, joined))
            until(lambda: ("reports", "down") in joined.state.readers.positions)
            for start in (10, 20, 30):
                push(joined.address, "a", start, start + 10)
            up = reader(directory.address, name="up")
            end = at(up, Offsets(), a=40)
            up.commit(end)
            again = reader(directory.address, name="down")
            assert taken(again, middle, at(again, middle, a=40)) == {"a": list(range(10, 40))}
            assert [each["reader"] for each in directory.readers()] == ["down", "up"]
            directory.forget_reader("reports", "down")
            assert ("reports", "down") not in joined.state.readers.positions
            for each in beats:
                each.leave()


def test_readers_are_known_over_a_restart_of_the_controller(tmp_path):
    """Defect 7: they are durable before the reader goes on."""
    with Directory("127.0.0.1:0", tmp_path) as directory, Endpoint(directory.address) as endpoint:
        endpoint.ask(ReaderPosition("r", "me", {"r/a": 5}))
        endpoint.ask(ReaderPosition("r", "gone", {}))
        endpoint.ask(ForgetReader("r", "gone"))
    with Directory("127.0.0.1:0", tmp_path) as directory:
        registered = directory.register("a:1")
        assert (registered.readers, registered.forgotten) == ((("r", "me"),), (("r", "gone"),))
        with pytest.raises(BadMessage, match="the readers are: r:me"):
            directory.forget_reader("r", "other")


# ---- rights --------------------------------------------------------------------------------------------


def tokens(path, **rights):
    path.write_text(
        "".join(f'[[token]]\nname = "{n}"\nsha256 = "{hash_of(n)}"\n{text}\n' for n, text in rights.items())
    )
    return Security(tokens=path)


def test_committing_is_a_right_of_its_own_for_each_stream(tmp_path):
    """Defect 9: a token that reads deletes nothing; one that commits a stream commits no other."""
    security = tokens(
        tmp_path / "tokens.toml", looker='read = ["r/*"]', run='read = ["r/*"]\ncommit = ["r/a"]'
    )
    with Gate("127.0.0.1:0", tmp_path / "gate", security=security) as gate:
        asked = Committed("r", "me", {"r/a": 1, "r/b": 1})
        for token, reason in (("looker", "may not commit rows of inlet 'r'"), ("run", "stream 'r/b'")):
            with (
                Endpoint(gate.address, Access(token=token)) as endpoint,
                pytest.raises(Refused, match=reason),
            ):
                endpoint.ask(asked)
        with Endpoint(gate.address, Access(token="run")) as endpoint:
            endpoint.ask(Committed("r", "me", {"r/a": 1}))
        assert gate.state.readers.positions == {("r", "me"): {"r/a": 1}}


def test_names_and_numbers_of_readers_are_limited(tmp_path):
    """Defect 9: reader names were free text without a limit."""
    with Gate("127.0.0.1:0", tmp_path, limits=Limits(readers=3)) as gate, Endpoint(gate.address) as endpoint:
        for number in range(3):
            endpoint.ask(Committed("r", f"reader-{number}", {}))
        with pytest.raises(Exception, match="3 readers, the limit"):
            endpoint.ask(Committed("r", "one more", {}))
        for name in ("x" * 201, "two\nlines"):
            with pytest.raises(Refused, match="give printable text of at most 200"):
                endpoint.ask(Committed("r", name, {}))


# ---- controllers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["a b:1", "gate\n:7400", "http://x:1", "räume:1"])
def test_a_malformed_address_is_refused(address):
    """Defect 24: before it is registered."""
    with Directory("127.0.0.1:0") as directory, pytest.raises(BadMessage, match="no address"):
        directory.register(address)


def test_a_malformed_address_of_old_does_not_stop_the_poller(tmp_path, caplog):
    """Defect 24: one that was stored earlier is left out and logged; other gates are looked at."""
    StreamRegistry(tmp_path / "d", 5.0, 0.0).close()
    with sqlite3.connect(next((tmp_path / "d").glob("directory-*.sqlite"))) as base:
        base.execute("INSERT INTO gates VALUES ('no gate at all:x', 0)")
    base.close()
    with (
        Directory("127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05) as directory,
        Gate("127.0.0.1:0", tmp_path / "gate") as gate,
    ):
        push(gate.address, "a", 0, 5)
        directory.register(gate.address)
        until(lambda: [each["next"] for each in directory.streams()] == [5])
    assert "a gate that was registered is left out" in caplog.text


def test_a_second_controller_on_one_folder_is_refused(tmp_path):
    """Defect 25: in words; as a process it stands by (`test_standby.py`)."""
    taken = pytest.raises(BadGate, match="another controller uses the folder")
    with Directory("127.0.0.1:0", tmp_path), taken:
        Directory("127.0.0.1:0", tmp_path)
    with Directory("127.0.0.1:0", tmp_path) as again:
        assert again.gates() == []


# ---- streams that are expected -------------------------------------------------------------------------


def test_expected_streams_hold_the_frontier_back_until_they_are_idle():
    """Newcomer 4: a stream that is known and of which no tuple has come promises nothing."""
    seen = Frontier().advance({"a": 100}, steady=0, looked=0, delay=0, idle=50, waiting=["b"])
    assert seen.value is None
    assert seen.advance({"a": 200}, steady=50, looked=50, delay=0, idle=50, waiting=["b"]).value is None
    assert seen.advance({"a": 200}, steady=51, looked=51, delay=0, idle=50, waiting=["b"]).value == 200
    assert seen.advance({"a": 200, "b": 150}, steady=10, looked=10, delay=0, idle=50).value == 150
    assert (
        seen.advance({"a": 200}, steady=10**9, looked=10**9, delay=0, idle=None, waiting=["b"]).value is None
    )


def test_an_offset_names_the_streams_of_a_gate_that_is_away(tmp_path):
    """Newcomer 4: the controller knows the streams of a gate that is away at the first epoch."""
    with Directory("127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05) as directory:
        away = Leaving(tmp_path / "a")
        with Gate("127.0.0.1:0", tmp_path / "b") as there:
            directory.register(str(away))
            directory.register(there.address)
            push(away, "a", 0, 10)
            push(there.address, "b", 0, 10)
            until(lambda: {each["stream"] for each in directory.streams()} == {"reports/a", "reports/b"})
            away.leave()
            inlet = reader(directory.address)
            inlet._began -= 60  # the first epoch has waited for all gates long enough
            end = Offsets.unpacked(at(inlet, Offsets(), b=10).packed())
            assert end.waiting == ("reports/a", f"all streams of gate {away}")
            assert end.away == (str(away),)
            away.come_back()
            later = at(inlet, end, a=10, b=10)
            assert (later.waiting, later.away) == ((), ())
            away.leave()


def test_a_stream_without_a_row_is_expected_once_its_client_has_connected(tmp_path):
    """Newcomer 4: a client that has opened a stream is known before its first row."""
    with (
        Directory("127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05) as directory,
        Gate("127.0.0.1:0", tmp_path / "b") as gate,
    ):
        directory.register(gate.address)
        push(gate.address, "b", 0, 10)
        with Client(directory.address, "reports/quiet", SCHEMA) as quiet:
            inlet = reader(directory.address)
            end = at(inlet, Offsets(), b=10)
            assert end.waiting == ("reports/quiet",)
            quiet.push(pa.record_batch({"n": [0]}, schema=SCHEMA))
            quiet.flush(120)
            assert at(inlet, end, b=10, quiet=1).waiting == ()


def test_a_reader_says_that_a_gate_has_come_with_another_log_until_it_is_forgotten(tmp_path):
    """Defect 5: forgetting is an explicit act that readers see."""
    with Directory("127.0.0.1:0", tmp_path / "d", away_seconds=600, poll_seconds=0.05) as directory:
        gate = Leaving(tmp_path / "gate")
        directory.register(str(gate), {"log": gate._gate.log.catalogue.log})
        with Client(directory.address, "reports/a", DDL) as client:
            client.push(numbers(0, 10))
        end = at(reader(directory.address), Offsets(), a=10)
        gate.leave()
        shutil.rmtree(tmp_path / "gate")
        gate.come_back()
        directory.register(str(gate), {"log": gate._gate.log.catalogue.log})
        with Client(directory.address, "reports/a", DDL) as client:
            client.push(numbers(10, 10))
        assert f"penstock gates forget {gate}" in raised(reader(directory.address), end)
        directory.forget(gate=str(gate))
        inlet = reader(directory.address)
        assert taken(inlet, end, at(inlet, end, a=20)) == {"a": list(range(10, 20))}
        gate.leave()
