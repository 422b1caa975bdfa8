"""A partitioning that the user chose is kept: control makes no router that it would not make."""

import pytest

from control.simulated import controller, run, stage
from penstock.routing import Goal, next_router, router_name


@pytest.mark.parametrize("name", ["consistent", "uniform"])
def test_what_looks_at_channels_alone_gets_no_table(name):
    simulated = stage(1, partitioning=name)
    rulings, busiest = run(simulated, controller(simulated), 30, exchanges=[15])
    assert rulings == []
    assert max(busiest) > 1.2
    assert [len(each.keys) for each in simulated.routers.values()] == [0]


def test_readj_gets_its_own_routers_only():
    simulated = stage(1, partitioning="readj", counted=20)
    control, taken = controller(simulated), 0
    for epoch in range(40):
        if epoch == 20:
            simulated.exchange()
        seen = simulated.next()
        (told,) = seen.stages
        known = told.known.frequencies
        goal = Goal(told.resources, sigma=told.sigma, domain=max(told.domain, len(known) + 1))
        own = next_router("readj", simulated.find(told.router), known, len(told.channels), goal)
        control.observe(seen)
        for ruling in control.decide(seen.committed):
            if ruling.carried_out:
                simulated.follow([ruling.decision])
                assert router_name(ruling.decision.router.to_bytes()) == router_name(own.to_bytes())
                taken += 1
    assert taken >= 1


def test_balanced_is_free():
    simulated = stage(1)
    rulings, _ = run(simulated, controller(simulated), 30)
    assert any(len(each.decision.router.keys) for each in rulings)
