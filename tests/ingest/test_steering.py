import logging
import threading
import time

import pytest

from ingest.paper_fleet import PaperController, PaperNodes, look, told
from penstock.control.admission import CORE, Limits
from penstock.errors import GateAway, NoGate
from penstock.ingest.directory.listing import list_gates
from penstock.ingest.directory.operator import ASKED, Operator
from penstock.ingest.directory.registry import GateMode


def overloaded(made):
    """Two streams at one gate, together above its capacity."""
    made.where(0.0, x=None, y=None)
    assert set(made.homes().values()) == {"a:1"}
    made.period(0.0, look(x=told(0), y=told(0)))
    return made.period(10.0, look(x=told(700), y=told(800)), look("b:1"))


def test_an_overloaded_gate_is_relieved_and_it_is_durable_before_anyone_hears():
    made = PaperController("a:1", "b:1")
    moves = overloaded(made)
    assert moves == {"a:1": {"b:1": ["r/y"]}}
    assert made.homes() == {"x": "a:1", "y": "b:1"}


def test_a_dry_run_decides_and_moves_nothing():
    made = PaperController("a:1", mode="observe")
    assert overloaded(made) == {}
    assert made.homes() == {"x": "a:1", "y": "a:1"}
    assert made.steering.forecasts == pytest.approx({"r/x": 70.0, "r/y": 80.0})


def test_excluded_streams_stay():
    made = PaperController("a:1", "b:1", limits=Limits(excluded=frozenset({"r/y"})))
    assert overloaded(made) == {"a:1": {"b:1": ["r/x"]}}


def test_a_policy_that_fails_changes_nothing_and_is_logged(monkeypatch, caplog):
    made = PaperController("a:1", "b:1")

    def fail(_):
        raise ZeroDivisionError("broken strategy")

    monkeypatch.setattr(made.steering._policy, "propose", fail)
    with caplog.at_level(logging.ERROR, logger="penstock.controller"):
        assert overloaded(made) == {}
    assert set(made.homes().values()) == {"a:1"}
    assert "broken strategy" in caplog.text
    monkeypatch.setattr(made.steering._policy, "admit", fail)
    assert made.where(11.0, z=None) == {"r/z": "b:1"}


def test_a_gate_that_does_not_answer_is_no_gate_without_work():
    for answers, moves in ((False, {}), (True, {"b:1": {"a:1": ["r/y"]}})):
        made = PaperController("a:1", "b:1")
        made.where(0.0, x=None, y=None)
        made.registry.move(["r/x"], "a:1", 0.0)
        made.registry.move(["r/y"], "b:1", 0.0)
        for period in range(3):
            made.period(10.0 * period, look("a:1", x=told(600 * period)), look("b:1", y=told(600 * period)))
        silent = look("b:1", y=told(1200))
        told_now = [look("a:1", x=told(1800)), *([silent] if answers else [])]
        assert made.period(30.0, *told_now) == moves


@pytest.mark.parametrize("strategy", ["drf-m", "penstock"])
def test_a_declared_rate_of_a_silent_stream_still_counts_after_a_minute(strategy):
    made = PaperController("a:1", "b:1", capacity=1000.0, strategy=strategy, period=1.0)
    made.where(0.0, silent={"expected_rate": 500})
    home = made.homes()["silent"]
    for second in range(61):
        made.period(float(second), look("a:1", silent=told(0)), look("b:1"))
    assert made.steering.measure("r/silent").rate == 0.0
    assert made.steering.forecasts["r/silent"] == pytest.approx(500.0)
    assert made.where(61.0, large={"expected_rate": 600})["r/large"] != home


def test_a_stream_that_declares_nothing_counts_as_the_mean_of_the_others():
    for capacity, fits in ((125.0, True), (115.0, False)):
        made = PaperController("a:1", capacity=capacity, strategy="ard", nodes=PaperNodes("m:1"))
        made.where(0.0, x=None, y=None)
        made.period(0.0, look(x=told(0), y=told(0)))
        made.period(10.0, look(x=told(200), y=told(600)))
        if fits:
            assert made.where(11.0, z=None) == {"r/z": "a:1"}
        else:
            with pytest.raises(NoGate):
                made.where(11.0, z=None)


def test_a_stream_that_fits_nowhere_waits_for_a_gate_that_is_started():
    made = PaperController("a:1", strategy="drf-m", nodes=PaperNodes("m:1"))
    made.where(0.0, x={"expected_rate": 80})
    with pytest.raises(NoGate, match="a gate is being started for 'r/y'"):
        made.where(1.0, y={"expected_rate": 50})
    assert made.registry.mode("m:1") is GateMode.STARTING
    made.period(1.5, look(x=told(0)))
    made.registry.register("m:1", {}, 2.0)
    assert made.fleet.look_after(2.0) == ["m:1"]
    assert made.where(2.5, y={"expected_rate": 50}) == {"r/y": "m:1"}


def test_streams_move_to_a_started_gate_once_it_is_there():
    made = PaperController("a:1", nodes=PaperNodes("m:1"))
    assert overloaded(made) == {}
    assert made.period(20.0, look(x=told(1400), y=told(1600))) == {}, "it is not decided twice"
    made.registry.register("m:1", {}, 21.0)
    made.fleet.look_after(21.0)
    assert made.steering.gate_came("m:1", 21.0) == {"a:1": {"m:1": ["r/y"]}}
    assert made.homes() == {"x": "a:1", "y": "m:1"}


def test_what_is_declared_to_a_gate_reaches_the_controller_and_the_last_word_counts():
    made = PaperController("a:1")
    made.where(0.0, x=None)
    made.period(0.0, look(x=told(0, metadata={"max_rate": 9})))
    assert made.registry.metadata("r/x") == {"max_rate": 9}
    made.registry.declare("r/x", {"max_rate": 7})
    made.period(10.0, look(x=told(0, metadata={"max_rate": 9})))
    assert made.registry.metadata("r/x") == {"max_rate": 7}
    made.period(20.0, look(x=told(0, metadata={"max_rate": 8})))
    assert made.registry.metadata("r/x") == {"max_rate": 8}


def test_a_stream_that_is_declared_before_it_flows_is_placed_by_it():
    made = PaperController("a:1", "b:1", strategy="drf-m")
    made.where(0.0, x={"expected_rate": 60})
    made.registry.declare("r/y", {"expected_rate": 70})
    assert made.homes()["y"] == ""
    assert made.where(1.0, y=None)["r/y"] != made.homes()["x"]
    assert made.registry.holders("r/y") == {made.homes()["y"]}


def test_a_stream_that_is_gone_takes_nothing_and_enters_as_a_new_one_when_it_is_back():
    made = PaperController("a:1", "b:1", strategy="drf-m")
    made.where(0.0, x={"expected_rate": 60}, y={"expected_rate": 30})
    for second, here in ((0.0, True), (10.0, True), (20.0, False), (30.0, False)):
        made.period(second, look("a:1", x=told(here=here), y=told()), look("b:1"))
    assert made.where(31.0, z={"expected_rate": 65}) == {"r/z": "a:1"}
    made.period(40.0, look("a:1", x=told(here=False), y=told(), z=told()), look("b:1"))
    assert made.where(41.0, x=None) == {"r/x": "b:1"}
    made.period(50.0, look("a:1", x=told(here=False), y=told(), z=told()), look("b:1", x=told()))
    assert set(made.steering.forecasts) == {"r/x", "r/y", "r/z"}


def test_a_gate_of_a_node_can_do_a_multiple_of_the_given_capacity():
    made = PaperController("a:1", strategy="drf-m", nodes=PaperNodes("m:1", least=1, shares={"m:1": 2.0}))
    made.fleet.look_after(0.0)
    made.registry.register("m:1", {}, 0.0)
    made.fleet.look_after(1.0)
    assert set(made.where(2.0, x={"expected_rate": 150}, y={"expected_rate": 40}).values()) == {"m:1"}
    made.period(10.0, look("m:1", x=told(0), y=told(0)), look("a:1"))
    assert {gate: view.capacity for gate, view in made.steering.views.items()} == {"a:1": 100.0, "m:1": 200.0}


def test_load_forecast_and_capacity_of_gates_are_told_in_one_unit():
    made = PaperController("a:1", capacity=None)
    made.where(0.0, x=None)
    for period in range(20):
        said = told(400 * period, batches=1000 * period, size=1000 * period)
        made.period(10.0 * period, look(seconds=100.0 + 10 * period, cpu=3.0 * period, x=said))
    (shown,) = list_gates(made.registry, made.steering, 200.0)
    assert shown["rate"] == 40.0
    assert shown["load"] == pytest.approx(0.3 / CORE, rel=0.05)
    assert shown["forecast"] == pytest.approx(shown["load"], rel=0.05)
    assert shown["capacity"] == pytest.approx(made.steering._measuring.capacity_of("a:1"), rel=1e-4)


@pytest.mark.parametrize("mode", ["on", "observe"])
def test_why_gates_were_decided_on_is_told_also_of_a_dry_run(mode):
    made = PaperController("a:1", mode=mode)
    made.where(0.0, x=None, y=None)
    made.registry.register("b:1", {}, 0.0)
    made.period(0.0, look(x=told(0), y=told(0)), look("b:1"))
    made.period(10.0, look(x=told(700), y=told(800)), look("b:1"))
    assert made.steering.why["a:1"].startswith("r/y: a:1 is overloaded")


def test_an_operator_drains_a_gate_of_the_streams_that_are_there():
    def away(gate):
        raise GateAway(gate)

    made = PaperController("a:1")
    made.where(0.0, here=None, gone=None)
    for second, there in ((0.0, True), (10.0, False), (20.0, False)):
        made.period(second, look(here=told(), gone=told(here=there)))
    now = time.time()
    for gate in ("a:1", "b:1"):
        made.registry.register(gate, {}, now)
    drained = Operator(made.steering, threading.Lock(), away).drain("a:1")
    assert drained == {"moved": [], "unreached": ["r/here"]}
    assert made.homes() == {"here": "b:1", "gone": "a:1"}
    assert made.where(now, gone=None) == {"r/gone": "b:1"}
    assert (made.registry.kept_out("a:1"), made.steering.why["a:1"]) == (ASKED, ASKED)
