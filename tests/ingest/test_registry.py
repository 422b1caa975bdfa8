import pyarrow as pa
import pytest

from penstock.errors import BadMessage, NoGate, TooMany
from penstock.ingest.directory.registry import StreamRegistry


def registry(folder=None, now=0.0):
    return StreamRegistry(folder, away_seconds=5.0, now=now)


def index(**highs):
    rows = [{"stream": name, "low": 0, "high": high, "frontier": None} for name, high in highs.items()]
    numbers = [(name, pa.int64()) for name in ("low", "high", "frontier")]
    return pa.Table.from_pylist(rows, pa.schema([("stream", pa.string()), *numbers]))


def test_new_streams_are_spread_and_known_ones_stay():
    known = registry()
    known.register("a:1", {}, now=1.0)
    known.register("b:1", {}, now=1.0)
    first = known.where({"r/1": None, "r/2": None}, now=1.0)
    assert set(first.values()) == {"a:1", "b:1"}
    assert known.where({"r/1": None, "r/2": None}, now=2.0) == first


def test_without_a_strategy_the_gate_with_the_fewest_streams_is_chosen():
    known = registry()
    known.register("a:1", {}, now=1.0)
    known.where({"r/1": None}, now=1.0)
    known.register("b:1", {}, now=1.0)
    assert known.where({"r/2": None}, now=1.0) == {"r/2": "b:1"}


def test_streams_of_a_silent_or_draining_gate_go_elsewhere():
    # a:1 is heard of at 1.0 and then no more: away after 6.0
    known = registry()
    known.register("a:1", {}, now=1.0)
    known.where({"r/1": None}, now=1.0)
    known.register("b:1", {}, now=6.0)
    assert known.where({"r/1": None}, now=6.0) == {"r/1": "a:1"}
    assert known.where({"r/1": None}, now=6.1) == {"r/1": "b:1"}
    known.register("a:1", {}, now=7.0)
    known.register("b:1", {"draining": True}, now=7.0)
    assert known.where({"r/1": None}, now=7.0) == {"r/1": "a:1"}


def test_a_stream_waits_for_its_gate_where_there_is_no_other():
    known = registry()
    with pytest.raises(NoGate, match="penstock gate --controller"):
        known.where({"r/1": None}, now=0.0)
    known.register("a:1", {}, now=1.0)
    known.where({"r/1": None}, now=1.0)
    assert known.where({"r/1": None}, now=99.0) == {"r/1": "a:1"}


def test_a_restart_knows_gates_streams_and_holders(tmp_path):
    before = registry(tmp_path)
    before.register("a:1", {}, now=1.0)
    before.register("b:1", {}, now=1.0)
    before.where({"r/1": {"expected_rate": 5}}, now=1.0)
    before.move(["r/1"], "b:1", now=1.0)
    before.close()
    after = registry(tmp_path, now=100.0)
    assert after.where({"r/1": None}, now=104.0) == {"r/1": "b:1"}
    assert after.holders("r/1") == {"a:1", "b:1"}
    assert after.streams("r")[0].metadata == {"expected_rate": 5}
    after.forget_gate("a:1")
    after.close()
    again = registry(tmp_path)
    assert again.holders("r/1") == {"b:1"}
    again.close()


def test_streams_are_bounded(monkeypatch):
    monkeypatch.setattr("penstock.ingest.directory.registry.MAX_STREAMS", 2)
    known = registry()
    known.register("a:1", {}, now=1.0)
    known.where({"r/1": None, "r/2": None}, now=1.0)
    assert known.where({"r/1": None}, now=1.0) == {"r/1": "a:1"}
    with pytest.raises(TooMany, match="2 streams are known"):
        known.where({"r/2": None, "r/3": None}, now=1.0)


def test_moves_name_the_gates_to_tell():
    known = registry()
    known.register("a:1", {}, now=1.0)
    known.where({"r/1": None, "r/2": None}, now=1.0)
    known.register("b:1", {}, now=1.0)
    assert known.move(["r/1"], "b:1", now=1.0) == {"a:1": ["r/1"]}
    assert known.move(["r/1", "r/2"], "b:1", now=1.0) == {"a:1": ["r/2"]}
    with pytest.raises(NoGate, match="gate c:1 is not there; the gates are: a:1, b:1"):
        known.move(["r/1"], "c:1", now=1.0)
    with pytest.raises(BadMessage, match="no stream 'r/3' is known"):
        known.move(["r/3"], "a:1", now=1.0)
