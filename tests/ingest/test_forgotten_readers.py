from ingest.held import act
from penstock.ingest import Directory, Gate
from penstock.ingest.gate.process import Heartbeat
from penstock.ingest.limits import Limits
from raw_push import GateProcess, RawPush, ask, rows


def committed(address, upto):
    ask(address, "committed", inlet="reports", reader="5f0c", upto={"reports/1": upto}, run="state/traffic")


def test_a_reader_that_is_silent_for_long_is_named_in_the_log_with_the_remedy(tmp_path):
    with GateProcess(tmp_path, "--silent-seconds", "1") as gate, RawPush(gate.address) as push:
        push.send("reports/1", 0, rows(0, 100), connect=True)
        push.wait_for("reports/1", 100)
        committed(gate.address, 40)
        line = next(line for line in gate.process.stderr if "has not committed" in line)
    assert "reader 5f0c of inlet reports has not committed for" in line
    assert "60 rows are kept for it" in line
    assert "start its run 'state/traffic' again" in line
    assert "penstock gates forget-reader reports:5f0c" in line


def test_a_controller_hears_which_readers_hold_up_a_gate(tmp_path):
    limits = Limits(silent_seconds=1.0)
    with (
        Directory("127.0.0.1:0") as directory,
        Gate("127.0.0.1:0", tmp_path, limits=limits) as gate,
        RawPush(gate.address) as push,
    ):
        push.send("reports/1", 0, rows(0, 100), connect=True)
        push.wait_for("reports/1", 100)
        committed(gate.address, 100)
        now = gate.state.readers._heard["reports", "5f0c"]
        gate.forgotten.look(now + 60)
        assert gate.forgotten.found == ()  # it has had everything
        push.send("reports/1", 100, rows(100, 5))
        push.wait_for("reports/1", 105)
        gate.forgotten.look(now + 60)
        heartbeat = Heartbeat(directory.address, gate)
        heartbeat.leave()
        (told,) = act(directory.address, "gates")["gates"]
    assert told["info"]["holding"] == [
        {"inlet": "reports", "reader": "5f0c", "run": "state/traffic", "rows": 5, "silent_seconds": 60.0}
    ]
    assert told["info"]["room_bytes"] > 0


def test_where_space_runs_out_the_answer_names_who_keeps_it(tmp_path):
    limits = Limits(store_bytes=200_000, segment_bytes=100_000)
    with Gate("127.0.0.1:0", tmp_path, limits=limits) as gate, RawPush(gate.address) as push:
        sequence = 0
        while push.heard.empty():
            push.send("reports/1", sequence, rows(sequence, 500), connect=sequence == 0)
            sequence += 500
        assert "inlet 'reports' has no reader, so its rows are kept" in push.answer()["message"]
        committed(gate.address, 0)
        gate.state.readers._heard["reports", "5f0c"] -= 100
        push.send("reports/2", 0, rows(0, 5), connect=True)
        said = next(each for each in iter(push.answer, None) if each["stream"] == "reports/2")["message"]
    assert "reader 5f0c of inlet 'reports' has not committed for 100 s" in said
    assert (
        "start its run 'state/traffic' again; if it does not come back: penstock gates forget-reader" in said
    )
