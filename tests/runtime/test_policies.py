"""What may be asked for: a rescale is checked when it is made, and no policy can end a run."""

from hypothesis import given

import penstock as ps
from junk import JUNK
from penstock.control.controller import Controller
from penstock.control.function_policy import FunctionPolicy
from penstock.control.limits import Budget, Limits
from penstock.errors import BadRescale
from penstock.query import MOST_CHANNELS
from penstock.routing import PARTITIONINGS
from penstock.runtime.control import RunControl
from penstock.runtime.requests import Requests

SEEN = ps.Observation(3, ())


@given(JUNK, JUNK, JUNK, JUNK)
def test_a_rescale_is_checked_when_it_is_made(stage, channels, partitioning, reason):
    try:
        wish = ps.Rescale(stage, channels, partitioning, reason)
    except BadRescale:
        return
    assert (type(wish.stage), type(wish.channels)) == (int, int)
    assert wish.stage >= 0
    assert 1 <= wish.channels <= MOST_CHANNELS
    assert wish.partitioning is None or wish.partitioning in PARTITIONINGS
    assert wish.reason.isprintable()


def control(policy, check=lambda _: None):
    """The control of a run without stages, under a policy of the user."""
    controller = Controller({"policy": FunctionPolicy(policy)}, Budget(Limits()), "on", check)
    return RunControl(controller, Requests((), {}))


@given(JUNK)
def test_a_policy_can_return_anything_and_only_wishes_pass(answer):
    asked = control(lambda _: answer)
    asked.after(3, lambda: SEEN)
    assert not asked.requests.asked()


def test_a_policy_that_raises_asks_for_nothing_and_is_logged(caplog):
    asked = control(lambda _: 1 / 0)
    asked.after(3, lambda: SEEN)
    assert not asked.requests.asked()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("penstock.run", "ERROR")
    assert "epoch 3, policy: the policy failed" in record.message
    assert "ZeroDivisionError" in record.message


def test_a_failure_of_control_itself_is_logged_and_ends_nothing(caplog):
    asked = control(lambda _: [])
    asked.after(3, lambda: 1 / 0)
    assert "epoch 3: control failed; the last plan is kept" in caplog.text


def test_a_request_that_cannot_be_met_is_held_back_and_told(caplog):
    def check(_):
        raise BadRescale("no such stage")

    asked = control(lambda _: [ps.Rescale(7, 2)], check)
    asked.after(3, lambda: SEEN)
    assert not asked.requests.asked()
    assert [each.held for each in asked.rulings] == ["it cannot be met: no such stage"]
    assert "no such stage" in caplog.text


def test_what_a_user_asks_for_comes_before_what_a_policy_asks_for():
    asked = control(lambda _: [ps.Rescale(0, 2), ps.Rescale(1, 3)])
    asked.requests.check = lambda _: None
    asked.requests.ask(ps.Rescale(0, 5))
    asked.after(3, lambda: SEEN)
    found = {place: wish.channels for place, wish in asked.requests.asked().items()}
    assert found == {(0, "channels"): 5, (1, "channels"): 3}
    assert [each.held for each in asked.rulings] == ["a request of the user comes first", ""]
