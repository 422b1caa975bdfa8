import json
import threading
import time

import pyarrow as pa
import pytest
from pyarrow import flight

from penstock.ingest import Gate, Limits
from raw_push import COMMAND, SCHEMA, RawPush, ask, get, numbers, ranges, rows


@pytest.fixture
def gate(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as running:
        yield running


def serves(gate):
    """A well-behaved client still gets through."""
    with RawPush(gate.address) as push:
        push.send("reports/good", 0, rows(0, 5), connect=True)
        push.wait_for("reports/good", 5)
    return True


def test_rows_are_acknowledged_and_read_back(gate):
    with RawPush(gate.address) as push:
        for sequence in range(0, 50, 10):
            push.send("reports/1", sequence, rows(sequence, 10), connect=sequence == 0)
        push.send("reports/2", 0, rows(0, 3), connect=True)
        push.wait_for("reports/1", 50)
        push.wait_for("reports/2", 3)
    assert ranges(gate.address) == {"reports/1": [(0, 50)], "reports/2": [(0, 3)]}
    assert numbers(gate.address, "reports/1", 7, 33) == list(range(7, 33))


def test_duplicates_are_acknowledged_and_overlaps_cut(gate):
    with RawPush(gate.address) as push:
        for sequence in (0, 0, 5, 12):
            push.send("reports/1", sequence, rows(sequence, 10), connect=sequence == 0)
        push.wait_for("reports/1", 22)
    assert ranges(gate.address) == {"reports/1": [(0, 22)]}
    assert numbers(gate.address, "reports/1", 0, 22) == list(range(22))
    assert ask(gate.address, "statistics")["counts"]["duplicates"] == 10 + 5 + 3


def test_a_gap_is_refused_with_the_number_expected(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 10), connect=True)
        push.send("reports/1", 20, rows(20, 10))
        answer = push.answer()
        assert (answer["refused"], answer["expected"]) == ("SequenceGap", 10)
        push.send("reports/1", 10, rows(10, 20))
        push.wait_for("reports/1", 30)
    assert ranges(gate.address) == {"reports/1": [(0, 30)]}


def test_after_connect_a_stream_goes_on_behind_a_hole(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 10), connect=True)
        push.wait_for("reports/1", 10)
    with RawPush(gate.address) as push:
        push.send("reports/1", 100, rows(100, 10), connect=True)
        push.send("reports/1", 110, rows(110, 5))
        push.wait_for("reports/1", 115)
    assert ranges(gate.address) == {"reports/1": [(0, 10), (100, 115)]}
    with pytest.raises(flight.FlightError, match="RangeNotHeld"):
        numbers(gate.address, "reports/1", 5, 105)


def test_a_batch_without_rows_carries_a_frontier_or_a_beginning(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 40, rows(40, 0), connect=True, frontier=7)
        push.wait_for("reports/1", 40)
        push.send("reports/1", 40, rows(40, 2), frontier=9)
        push.wait_for("reports/1", 42)
        push.send("reports/1", 42, rows(42, 0), frontier=12)
        push.finish()
    (line,) = get(gate.address, op="index", inlet="reports").to_pylist()
    assert (line["low"], line["high"], line["frontier"]) == (40, 42, 12)


def test_the_index_tells_only_what_changed(gate):
    with RawPush(gate.address) as push:
        for name in "ab":
            push.send(f"reports/{name}", 0, rows(0, 4), connect=True)
            push.wait_for(f"reports/{name}", 4)
        whole = get(gate.address, op="index", inlet="reports")
        since = whole.schema.metadata[b"generation"].decode()
        assert get(gate.address, op="index", inlet="reports", since=since).num_rows == 0
        push.send("reports/b", 4, rows(4, 4))
        push.wait_for("reports/b", 8)
    assert get(gate.address, op="index", inlet="reports", since=since).column("stream").to_pylist() == [
        "reports/b"
    ]
    assert get(gate.address, op="index", inlet="reports", since="other:5").num_rows == 2


def test_the_stream_can_be_a_column(gate):
    with RawPush(gate.address) as push:
        for name in "ab":
            push.send(f"reports/{name}", 0, rows(0, 3), connect=True)
            push.wait_for(f"reports/{name}", 3)
    wanted = [["reports/b", 1, 3], ["reports/a", 0, 1]]
    table = get(gate.address, op="read", inlet="reports", ranges=wanted, stream_column="source")
    assert table.column("source").to_pylist() == ["reports/b", "reports/b", "reports/a"]
    with pytest.raises(flight.FlightError, match="give another name"):
        get(gate.address, op="read", inlet="reports", ranges=wanted, stream_column="number")


def test_another_schema_is_refused_and_the_first_stays(gate):
    serves(gate)
    other = pa.record_batch({"time": pa.array([1], pa.timestamp("us")), "number": [1.5]})
    with RawPush(gate.address, other.schema) as push:
        push.send("reports/2", 0, other, connect=True)
        answer = push.answer()
        assert answer["refused"] == "WrongSchema"
        assert "number double" in answer["message"]
        push.send("speeds/2", 0, other, connect=True)
        push.wait_for("speeds/2", 1)
    assert serves(gate)


def test_dictionaries_are_refused(gate):
    batch = pa.record_batch({"word": pa.array(["a", "b"]).dictionary_encode()})
    with RawPush(gate.address, batch.schema) as push:
        push.send("words", 0, batch, connect=True)
        assert "send the plain values" in push.answer()["message"]


def test_rows_that_lie_about_themselves_are_refused(gate):
    text = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\xff\0\0\0\x02\0\0\0"), pa.py_buffer(b"ab")]
    )
    batch = pa.record_batch({"time": pa.array([1, 2], pa.timestamp("us")), "number": [1, 2], "text": text})
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, batch.cast(SCHEMA) if batch.schema != SCHEMA else batch, connect=True)
        answer = push.answer()
        assert answer["refused"] == "BadMessage"
    assert serves(gate)


def test_suspended_streams_wait_and_others_do_not(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 1), connect=True)
        push.wait_for("reports/1", 1)
        assert ask(gate.address, "suspend", streams=["reports/1", "reports/no"])["suspended"] == ["reports/1"]
        push.send("reports/1", 1, rows(1, 1))
        push.send("reports/1", 2, rows(2, 1))
        push.send("reports/2", 0, rows(0, 1), connect=True)
        push.wait_for("reports/2", 1)
        answer = push.answer()
        assert answer["wait"] > 0
        assert "suspended" in answer["message"]
        ask(gate.address, "resume", streams=["reports/1"])
        push.send("reports/1", 1, rows(1, 2))
        push.wait_for("reports/1", 3)


def test_a_redirection_is_told_at_once_and_ends_with_connect(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 8), connect=True)
        push.wait_for("reports/1", 8)
        ask(gate.address, "redirect", streams=["reports/1"], to="127.0.0.1:7777")
        assert push.answer() == {"stream": "reports/1", "redirect": "127.0.0.1:7777", "acknowledged": 8}
        push.send("reports/1", 8, rows(8, 1))
        assert push.answer()["redirect"] == "127.0.0.1:7777"
        push.send("reports/1", 20, rows(20, 5), connect=True)
        push.wait_for("reports/1", 25)
    assert ranges(gate.address) == {"reports/1": [(0, 8), (20, 25)]}


def test_a_drained_gate_sends_everybody_away(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 8), connect=True)
        push.wait_for("reports/1", 8)
        assert ask(gate.address, "drain", to="127.0.0.1:7777")["redirected"] == ["reports/1"]
        assert push.answer()["redirect"] == "127.0.0.1:7777"
        push.send("reports/2", 0, rows(0, 8), connect=True)
        assert push.answer()["redirect"] == "127.0.0.1:7777"
    assert ranges(gate.address) == {"reports/1": [(0, 8)]}


def test_metadata_is_kept_and_shown_and_checked(gate):
    with RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 1), connect=True, declare={"max_rate": 200, "transition": "jump"})
        push.wait_for("reports/1", 1)
        push.send("reports/2", 0, rows(0, 1), connect=True, declare={"max_rate": -3})
        assert push.answer()["refused"] == "BadMetadata"
    streams = ask(gate.address, "status")["streams"]
    assert streams["reports/1"]["metadata"] == {"max_rate": 200, "transition": "jump"}


def test_everything_is_there_after_a_restart(tmp_path):
    with Gate("127.0.0.1:0", tmp_path) as gate, RawPush(gate.address) as push:
        push.send("reports/1", 5, rows(5, 10), connect=True, declare={"max_rate": 1}, frontier=3)
        push.wait_for("reports/1", 15)
    with Gate("127.0.0.1:0", tmp_path) as gate:
        assert numbers(gate.address, "reports/1", 5, 15) == list(range(5, 15))
        assert ask(gate.address, "status")["streams"]["reports/1"]["metadata"] == {"max_rate": 1}
        assert ask(gate.address, "next", streams=["reports/1", "reports/new"])["next"] == {
            "reports/1": 15,
            "reports/new": 0,
        }
        with RawPush(gate.address) as push:
            push.send("reports/1", 5, rows(5, 12), connect=True)
            push.wait_for("reports/1", 17)
        assert ranges(gate.address) == {"reports/1": [(5, 17)]}


def test_limits_refuse_and_say_which(tmp_path):
    limits = Limits(message_bytes=10_000, message_rows=500, streams_per_client=2, streams=3, calls=2)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate:
        with RawPush(gate.address) as push, RawPush(gate.address) as other:
            push.send("reports/1", 0, rows(0, 400), connect=True)
            assert push.answer()["refused"] == "TooLarge"
            push.send("reports/1", 0, rows(0, 100), connect=True)
            push.send("reports/2", 0, rows(0, 1), connect=True)
            push.send("reports/3", 0, rows(0, 1), connect=True)
            assert "of this push" in push.answer()["message"]
            other.send("reports/3", 0, rows(0, 1), connect=True)
            other.send("reports/4", 0, rows(0, 1), connect=True)
            assert "to another gate" in other.answer()["message"]
            third = RawPush(gate.address)
            third.close()
            assert "2 pushes are open" in str(third.error)
        with RawPush(gate.address) as push:
            push.send("reports/3", 1, rows(1, 1), connect=True)
            push.wait_for("reports/3", 2)


@pytest.mark.parametrize(
    ("streams", "most", "words"),
    [(1, 20_000, "20,000; keep to the credit"), (6, 60_000, "60,000; send again later")],
)
def test_rows_in_memory_are_bounded_and_clients_told_to_wait(tmp_path, streams, most, words):
    limits = Limits(stream_bytes=20_000, gate_bytes=60_000)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate, RawPush(gate.address) as push:
        with gate.log._lock:  # a disk that takes very long
            for number in range(12):  # a client that pays no heed to its credit
                sequence = number // streams * 200
                push.send(f"reports/{number % streams}", sequence, rows(sequence, 200), connect=sequence == 0)
            answer = push.answer()
            assert words in answer["message"]
            assert answer["wait"] > 0
            assert most / 2 < gate.state.pending_bytes <= most
        push.finish()
        assert gate.state.pending_bytes == 0
        for stream, upto in push.acknowledged.items():
            assert numbers(gate.address, stream, 0, upto) == list(range(upto))


def test_a_full_store_waits_for_readers(tmp_path):
    limits = Limits(store_bytes=40_000, segment_bytes=8_000)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate, RawPush(gate.address) as push:
        sequence = 0
        while push.heard.empty():
            push.send("reports/1", sequence, rows(sequence, 100), connect=sequence == 0)
            sequence += 100
            time.sleep(0.005)
        assert "inlet 'reports' has no reader, so its rows are kept" in push.answer()["message"]
        taken = push.acknowledged["reports/1"]
        ask(gate.address, "committed", inlet="reports", reader="traffic", upto={"reports/1": taken})
        push.send("reports/1", taken, rows(taken, 100))
        push.wait_for("reports/1", taken + 100)


def test_readers_of_deleted_rows_are_told(tmp_path):
    with Gate("127.0.0.1:0", tmp_path, limits=Limits(segment_bytes=4_000)) as gate:
        with RawPush(gate.address) as push:
            for sequence in range(0, 2000, 100):
                push.send("reports/1", sequence, rows(sequence, 100), connect=sequence == 0)
                push.wait_for("reports/1", sequence + 100)
        ask(gate.address, "committed", inlet="reports", reader="traffic", upto={"reports/1": 2000})
        ((low, high),) = ranges(gate.address)["reports/1"]
        assert 0 < low < high == 2000
        with pytest.raises(flight.FlightError, match="RangeNotHeld"):
            numbers(gate.address, "reports/1", 0, 2000)


def test_many_pushes_at_once_keep_each_stream_whole(gate):
    def push_all(number):
        with RawPush(gate.address) as push:
            for sequence in range(0, 400, 20):
                for stream in range(8):
                    push.send(
                        f"reports/{number}-{stream}", sequence, rows(sequence, 20), connect=sequence == 0
                    )
            for stream in range(8):
                push.wait_for(f"reports/{number}-{stream}", 400)

    threads = [threading.Thread(target=push_all, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert ranges(gate.address) == {f"reports/{n}-{s}": [(0, 400)] for n in range(6) for s in range(8)}
    assert numbers(gate.address, "reports/3-3", 0, 400) == list(range(400))


def test_two_pushes_of_one_stream_store_it_once(gate):
    def push_all():
        with RawPush(gate.address) as push:
            for sequence in range(0, 600, 7):
                push.send("reports/1", sequence, rows(sequence, 7), connect=True)
            push.wait_for("reports/1", 602)

    threads = [threading.Thread(target=push_all) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert ranges(gate.address) == {"reports/1": [(0, 602)]}
    assert numbers(gate.address, "reports/1", 0, 602) == list(range(602))


def test_a_client_that_hears_no_answers_holds_up_nobody(gate):
    with flight.connect(f"grpc://{gate.address}") as client:
        writer, _reader = client.do_put(COMMAND, SCHEMA)
        for number in range(3000):
            writer.write_with_metadata(
                rows(0, 1), json.dumps({"stream": f"reports/{'x' * 200}{number}", "sequence": 5}).encode()
            )
        assert serves(gate)
        del writer, _reader


@pytest.mark.parametrize(
    ("action", "body", "words"),
    [
        ("dance", {}, "the actions are: status"),
        ("redirect", {"streams": ["reports/1"]}, "to is 'None'; give text"),
        ("suspend", {"streams": "all"}, "give a list of stream ids"),
        ("committed", {"inlet": "reports", "reader": "x", "upto": {"a": "b"}}, "give an object of streams"),
        ("schema", {"inlet": "none"}, "the inlets are: none yet"),
    ],
)
def test_a_wrong_action_is_refused_in_words(gate, action, body, words):
    with pytest.raises(flight.FlightError, match=words):
        ask(gate.address, action, **body)
