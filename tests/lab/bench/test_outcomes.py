from types import SimpleNamespace

from penstock_lab.bench.outcomes import SECTION, outcome_rows, outcomes_of


def test_a_run_without_outcomes_has_an_empty_table():
    assert outcomes_of(SimpleNamespace()) == ()


def test_a_change_stands_with_its_prediction_and_its_measure():
    moved = SimpleNamespace(policy="layout", stage=0, epoch=12, predicted=0.2, measured=0.15)
    waiting = SimpleNamespace(policy="layout", stage=0, epoch=80, predicted=0.2, measured=None)
    (row,) = outcome_rows("waiting", "pair 1, on", outcomes_of(SimpleNamespace(outcomes=[moved, waiting])))
    assert row["section"] == SECTION
    assert (row["case"], row["policy"], row["epoch"]) == ("waiting", "layout", 12)
    assert row["measured_over_predicted"] == 0.75


def test_without_a_prediction_there_is_no_ratio():
    told = SimpleNamespace(policy="layout", stage=0, epoch=1, predicted=0.0, measured=0.1)
    (row,) = outcome_rows("waiting", "on", outcomes_of(SimpleNamespace(outcomes=[told])))
    assert row["measured_over_predicted"] is None
