"""The scaling option: a name, or a dict with the settings of a policy, checked when it is given."""

import pytest

import penstock as ps
from penstock.control.scaling.run_policy import RunScaling
from penstock.errors import BadOption
from penstock.query.run_options import RunOptions


def made(**options):
    return RunScaling(**RunOptions(**options).scaling_policy(1, 8))


def test_a_name_alone_has_the_settings_of_its_policy():
    assert made(scaling="autoscale").scaler.beta == 0.6
    assert made().scaler.name == "penstock"


def test_every_parameter_of_autoscale_can_be_set():
    given = {"policy": "autoscale", "share": 0.2, "fill": 0.7, "beta": 0.5, "combine": "min", "ticks": 5}
    policy = made(scaling={**given, "reserved": 0.9, "tick": 10, "out_cooldown": 30, "stabilisation": 20})
    assert {name: getattr(policy.scaler, name) for name in list(given)[1:]} == {
        name: value for name, value in given.items() if name != "policy"
    }
    assert policy.tick == 10
    limits = policy.scaler.limits
    assert (limits.least, limits.most, limits.out_cooldown, limits.stabilisation) == (1, 8, 30, 20)


def test_the_preset_of_the_paper_is_table_2():
    scaler = made(scaling={"policy": "autoscale", "preset": "paper"}).scaler
    assert (scaler.share, scaler.fill, scaler.beta, scaler.combine) == (0.3, 0.3, 0.8, "max")


def test_the_bound_of_the_run_is_that_of_the_policy_unless_it_has_its_own():
    qos = ps.QoS(latency="5 seconds")
    assert made(qos=qos).scaler.settings.bound == 5.0
    assert made(qos=qos, scaling={"policy": "qos", "bound": 3.0}).scaler.bound == 3.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("best", "scaling='best'; give one of"),
        ({"policy": "best"}, "scaling: policy='best'; give one of"),
        ({"policy": "autoscale", "beta": 0.9}, "give one up to 0.64"),
        ({"policy": "qos", "speed": 3}, "unexpected keyword argument 'speed'"),
        ({"tick": 0}, "tick=0; give a number of seconds above 0"),
        ({"out_cooldown": -1}, "out_cooldown=-1; give a number of seconds from 0"),
    ],
)
def test_what_cannot_be_used_is_refused(given, words):
    with pytest.raises(BadOption, match=words):
        RunOptions(scaling=given)
