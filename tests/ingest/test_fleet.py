from ingest.paper_fleet import PaperController, PaperNodes, at, look, told
from penstock.ingest.directory.fleet import AGAIN_S, PATIENCE_S, Fleet
from penstock.ingest.directory.registry import GateMode, StreamRegistry


def fleet_with(*gates, least=0, registered=()):
    nodes = PaperNodes(*gates, least=least)
    return PaperController(*registered, nodes=nodes), nodes


def running(made, nodes, *gates, now=0.0):
    for gate in gates:
        made.fleet.start(gate, now)
        made.registry.register(gate, {"log": f"log of {gate}"}, now)
    made.fleet.look_after(now)
    assert nodes.running >= set(gates)


def test_the_least_number_of_gates_is_started():
    made, nodes = fleet_with("m:1", "m:2", "m:3", least=2)
    made.fleet.look_after(0.0)
    assert (made.fleet.starting(), nodes.running) == (["m:1", "m:2"], {"m:1", "m:2"})


def test_a_gate_is_stopped_and_forgotten_only_when_all_is_read():
    made, nodes = fleet_with("m:1", registered=["a:1"])
    running(made, nodes, "m:1")
    made.fleet.drain("m:1")
    unread = at(0.0, look("m:1", x=told(5, kept=1)))
    read = at(0.0, look("m:1", x=told(5)))
    assert made.fleet.to_close(unread) == made.fleet.to_close({}) == []
    assert made.fleet.to_close(read) == ["m:1"]
    made.fleet.closed("m:1")
    made.fleet.stop_closed(at(0.0, look("m:1", pending=9)), 0.0)
    assert made.registry.mode("m:1") is GateMode.CLOSING
    made.fleet.stop_closed(read, 0.0)
    assert made.registry.mode("m:1") is GateMode.STOPPING
    made.fleet.look_after(1.0)
    assert made.registry.mode("m:1") is None
    assert [each.address for each in made.registry.gates()] == ["a:1"]
    assert (nodes.cleared, made.registry.forgotten()) == (["m:1"], ["log of m:1", "m:1"])


def test_a_draining_gate_that_a_stream_still_calls_home_is_not_closed():
    made, nodes = fleet_with("m:1")
    running(made, nodes, "m:1")
    made.where(0.0, x=None)
    made.fleet.drain("m:1")
    assert made.fleet.to_close(at(0.0, look("m:1"))) == []


def test_a_draining_gate_is_used_again_before_another_is_started():
    made, nodes = fleet_with("m:1", "m:2")
    running(made, nodes, "m:1")
    made.fleet.drain("m:1")
    assert made.fleet.startable(1.0) == ["m:1", "m:2"]
    made.fleet.start("m:1", 1.0)
    assert made.registry.mode("m:1") is GateMode.ACTIVE


def test_a_gate_that_registered_by_itself_is_free_and_never_stopped():
    made, _ = fleet_with(registered=["a:1", "b:1"])
    made.fleet.drain("b:1")
    assert made.registry.mode("b:1") is GateMode.FREE
    assert made.fleet.to_close(at(0.0, look("b:1"))) == []
    assert made.fleet.startable(0.0) == ["b:1"]
    assert made.where(0.0, x=None) == {"r/x": "a:1"}


def test_a_gate_that_ends_by_itself_is_started_again_on_what_it_holds():
    made, nodes = fleet_with("m:1")
    running(made, nodes, "m:1")
    nodes.running.clear()
    gone = 1001.0
    made.fleet.look_after(gone)
    assert nodes.running == {"m:1"}
    assert nodes.cleared == []


def test_a_gate_that_does_not_come_is_tried_again_and_then_given_up():
    made, nodes = fleet_with("m:1")
    made.fleet.start("m:1", 0.0)
    nodes.running.clear()
    made.fleet.look_after(AGAIN_S - 1)
    assert not nodes.running
    made.fleet.look_after(AGAIN_S)
    assert nodes.running
    made.fleet.look_after(PATIENCE_S + 1)
    assert (made.registry.mode("m:1"), made.fleet.startable(0.0)) == (None, ["m:1"])


def test_modes_survive_a_restart(tmp_path):
    first = StreamRegistry(tmp_path, 5.0, 0.0)
    first.register("a:1", {}, 0.0)
    first.set_mode("a:1", GateMode.DRAINING)
    first.close()
    again = StreamRegistry(tmp_path, 5.0, 0.0)
    assert (again.mode("a:1"), again.accepts("a:1", 1.0)) == (GateMode.DRAINING, False)
    again.set_mode("a:1", GateMode.ACTIVE)
    again.close()
    last = StreamRegistry(tmp_path, 5.0, 0.0)
    assert last.accepts("a:1", 1.0)
    last.close()


def test_how_long_a_gate_takes_to_start_is_told_by_who_has_started_it():
    made, nodes = fleet_with("m:1")
    made.fleet.start("m:1", 0.0)
    later = Fleet(made.registry, nodes)
    made.registry.register("m:1", {}, 7.0)
    assert later.look_after(7.0) == ["m:1"]
    assert later.startup is None
    made.registry.set_mode("m:1", GateMode.STARTING)
    made.fleet.look_after(7.0)
    assert made.fleet.startup == 7.0
