"""Runs a simulated stage under a controller, as a run does after each epoch."""

from penstock.control.controller import Controller
from penstock.control.layout import LayoutPolicy, LayoutSettings
from penstock.control.limits import Budget, Limits
from penstock_lab.simulate import SkewedStage
from penstock_lab.workloads import zipf_shares

UNIFORM = 0.0


def stage(seed, skew=1.0, keys=20_000, **given):
    return SkewedStage(seed, zipf_shares(keys, skew), **given)


def controller(simulated, limits=None, settings=None, **given):
    policy = LayoutPolicy(simulated.find, settings or LayoutSettings())
    return Controller({"layout": policy}, Budget(limits or Limits()), **given)


def run(simulated, control, epochs, exchanges=()):
    """The rulings on changes, and the true busiest over mean after each epoch."""
    rulings, busiest = [], []
    for epoch in range(epochs):
        if epoch in exchanges:
            simulated.exchange()
        seen = simulated.next()
        control.observe(seen)
        found = control.decide(seen.committed)
        simulated.follow([each.decision for each in found if each.carried_out])
        rulings += [each for each in found if each.decision is not None]
        busiest.append(simulated.busiest)
    return rulings, busiest
