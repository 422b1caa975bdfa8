import json

import pytest

from penstock_lab.reproduce.streamcloud import STREAMCLOUD
from penstock_lab.reproduce.streamcloud_costs import PAPER
from penstock_lab.reproduce.streamcloud_fixed_window import _exponent, _processed
from penstock_lab.reproduce.streamcloud_query import (
    FIGURE_8,
    operator_plan,
    query_plan,
    subqueries,
    subquery_plan,
)

# What the paper says and the model does not, each for the reason in its row: see docs/experiments.md.
DIFFERS = {
    "002/7e": {
        "window of 20,000, fitted: exponent of tuples/s, 4 to 64 processors",
        "window of 20,000, measured here: exponent of tuples/s, 4 to 64 processors",
        "window of 20,000: rate of 4 processors off 200 t/s by",
    }
}


@pytest.mark.parametrize("experiment", STREAMCLOUD, ids=lambda each: each.id)
def test_every_shape_of_the_paper_holds_but_the_known_ones(experiment):
    outcome = experiment.run(quick=True, seed=7)
    assert not [check.name for check in outcome.checks if check.ok is False]
    assert {check.name for check in outcome.checks if not check.ok} == DIFFERS.get(experiment.id, set())
    assert list(outcome.figures) == [experiment.id.replace("/", "-fig-")]
    json.dumps([list(outcome.rows), [check.as_dict() for check in outcome.checks]])


def test_figure_7e_is_super_linear_in_tuples_processed_over_all_instances():
    published = {4: 200.0, 16: 600.0, 36: 1_400.0, 64: 2_500.0}
    assert _exponent(published, 4) == pytest.approx(0.91, abs=0.005)
    assert _exponent(_processed(published), 4) == pytest.approx(1.41, abs=0.005)


def sizes(plan):
    return [len(stage.hosts) for stage in plan.stages]


def test_operators_get_the_processors_of_the_footnote():
    plan = operator_plan(60, PAPER.query_work, PAPER.query_links)
    assert sizes(plan) == [16, 12, 8, 8, 8, 4, 2, 2]
    assert sum(operator.stateful for operator in FIGURE_8) == 3


@pytest.mark.parametrize("processors", [20, 30, 60])
def test_subclusters_are_whole_nodes_apart_from_each_other(processors):
    for plan in (
        operator_plan(processors, PAPER.query_work, PAPER.query_links),
        subquery_plan(processors, PAPER.query_work, PAPER.query_links),
    ):
        assert all(size % 2 == 0 for size in sizes(plan))
        assert sorted(host for stage in plan.stages for host in stage.hosts) == list(range(processors))


def test_the_whole_query_runs_everywhere_with_the_cuts_of_the_subqueries():
    plan = query_plan(30, PAPER.query_work, PAPER.query_links)
    assert sizes(plan) == [30] * len(subqueries(FIGURE_8))
    # Sources, then 30 and 30 for each of two redistributions, then the sink.
    assert set(plan.connections.tolist()) == {15 + 4 * 30 + 1}


def test_a_subquery_does_the_work_of_its_operators_but_for_the_filter_in_its_balancer():
    work = {"join": 8.0, "filter": 4.0, "map": 2.0, "aggregate": 1.0}
    first = subquery_plan(60, work, PAPER.query_links).stages[0]
    # join on all, filter on 3/4, two maps on 1/2; the last filter is a part of the load balancer.
    assert first.work == pytest.approx(8 + 4 * 3 / 4 + 2 * 2 * 1 / 2)
    assert first.selectivity == pytest.approx(1 / 4)
