import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock_lab.algorithms import UniformHash
from penstock_lab.errors import BadSimulation
from penstock_lab.simulate import (
    Clock,
    Dealt,
    Gridded,
    Keyed,
    Links,
    Plan,
    Stage,
    Window,
    key_hashes,
    processors,
    simulate,
)

KEYS = key_hashes(10_000)
BRIEF = Clock(seconds=1.0, slice=0.02, warm_up=0.2)


def rng(seed=7):
    return np.random.default_rng(seed)


def chain(works, channels, links=None):
    """Stages in a row, each on processors of its own."""
    stages, start, before = [], 0, "source"
    for number, (work, count) in enumerate(zip(works, channels, strict=True)):
        split = Keyed(UniformHash(count), KEYS) if number % 2 else Dealt(count)
        hosts = tuple(range(start, start + count))
        stages.append(Stage(f"s{number}", work, split, hosts, (before,), 0.8, links=links or Links()))
        start, before = start + count, f"s{number}"
    return Plan(tuple(stages), np.ones(start))


plans = st.lists(st.tuples(st.floats(1e-4, 1e-2), st.integers(1, 5)), min_size=1, max_size=4).map(
    lambda drawn: chain(*zip(*drawn, strict=True), links=Links(1e-5, 1e-5, 2e-5, 1e-3))
)


@settings(max_examples=25)
@given(plans, st.floats(10, 20_000), st.integers(0, 9))
def test_no_tuple_is_lost_or_made(plan, rate, seed):
    seen = simulate(plan, rate, rng(seed), BRIEF)
    for stage in seen.stages:
        assert stage.received == pytest.approx(stage.done + stage.queued)
    for before, after in zip(seen.stages, seen.stages[1:], strict=False):
        # What was done in the last slice is still on its way.
        assert after.received <= before.done * 0.8 * (1 + 1e-9)


@settings(max_examples=25)
@given(plans, st.floats(10, 20_000), st.integers(0, 9))
def test_processors_are_never_more_than_busy(plan, rate, seed):
    seen = simulate(plan, rate, rng(seed), BRIEF)
    assert 0 <= seen.operators <= 1 + 1e-9
    assert -1e-9 <= seen.idle <= 1


def test_one_channel_queues_like_random_arrivals_at_a_steady_server():
    busy = 0.8
    # A slice is the service of one tuple: left over after it are, on average, busy^2 / (2 (1 - busy)).
    plan = Plan((Stage("one", 1.0, Dealt(1), (0,)),), np.ones(1))
    seen = simulate(plan, busy, rng(), Clock(seconds=15_000, slice=1.0, warm_up=1_000))
    assert seen.queue == pytest.approx(busy**2 / (2 * (1 - busy)), rel=0.12)
    # 14,000 slices of random arrivals: four standard deviations.
    assert seen.cpu == pytest.approx(busy, abs=4 * np.sqrt(busy / 14_000))


def test_a_chain_is_as_fast_as_its_slowest_subcluster():
    seen = simulate(chain([0.001, 0.004], [2, 2]), 5_000, rng())
    # 500 tuples/s reach the second stage's capacity after a selectivity of 0.8.
    assert seen.throughput == pytest.approx(500 / 0.8, rel=0.02)
    assert seen.stages[1].queued > 1_000


def test_channels_on_one_processor_share_it():
    first = Stage("first", 0.001, Dealt(2), (0, 1))
    second = Stage("second", 0.003, Dealt(2), (0, 1), ("first",))
    seen = simulate(Plan((first, second), np.ones(2)), 2_000, rng())
    assert seen.throughput == pytest.approx(2 / 0.004, rel=0.02)


def test_the_product_forms_every_pair_once_however_many_channels():
    def comparisons(channels):
        stage = Stage("product", 0.0, Gridded(channels), tuple(range(channels)), window=Window(rows=2_000))
        seen = simulate(Plan((stage,), np.ones(channels)), 400, rng())
        return seen.comparisons / seen.throughput

    assert comparisons(1) == pytest.approx(2_000)
    assert comparisons(16) == pytest.approx(2_000, rel=0.01)


def test_a_time_window_costs_the_square_of_the_load():
    stage = Stage("join", 0.0, Gridded(4), (0, 1, 2, 3), window=Window(seconds=10.0), compare=1e-7)
    plan = Plan((stage,), np.ones(4))
    low, high = (simulate(plan, rate, rng()).operators for rate in (500, 1_000))
    assert high / low == pytest.approx(4, rel=0.05)


def test_connections_take_their_part_of_a_processor():
    plan = chain([0.001, 0.001], [3, 5], Links(connection=0.01))
    # The first stage: 1 source and 5 readers; the second: 3 senders and 1 sink.
    assert plan.connections.tolist() == [6, 6, 6, 4, 4, 4, 4, 4]
    seen = simulate(plan, 0.0, rng())
    assert seen.communication == pytest.approx(0.01 * (18 + 20) / 8)
    assert seen.throughput == 0


def test_more_instances_than_cores_do_no_more_work():
    def throughput(instances):
        stage = Stage("map", 0.001, Dealt(2 * instances), tuple(range(2 * instances)))
        return simulate(Plan((stage,), processors(2, instances, cores=4)), 20_000, rng()).throughput

    assert throughput(2) == pytest.approx(2 * throughput(1), rel=0.01)
    assert throughput(6) == pytest.approx(throughput(4), rel=0.01)


def test_a_run_is_the_same_every_time():
    plan = chain([0.001, 0.002], [2, 3])
    assert simulate(plan, 900, rng(3)) == simulate(plan, 900, rng(3))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Clock(seconds=1, warm_up=1),
        Window,
        lambda: Window(seconds=1, rows=1),
        lambda: Stage("a", 1.0, Dealt(2), (0, 0)),
        lambda: Plan((Stage("a", 1.0, Dealt(1), (0,), ("b",)),), np.ones(1)),
        lambda: Plan((Stage("a", 1.0, Dealt(1), (1,)),), np.ones(1)),
        lambda: simulate(
            Plan((Stage("a", 1.0, Dealt(1), (0,), window=Window(rows=5)),), np.ones(1)), 1.0, rng()
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(wrong):
    with pytest.raises(BadSimulation, match=r"give|split"):
        wrong()
