"""Keys that are split in the records of a run: in its plans, and in the work of its channels."""

import json

from penstock.distribution.key_layout import KeyLayout
from penstock.distribution.sub_keys import SplitKey, SubKeyPlan
from penstock.runtime.dataflow.channels import Formed, Receipt, channel_work
from penstock.runtime.records import EpochPlan, StagePlan


def test_a_plan_survives_its_text():
    split = SubKeyPlan((SplitKey(-5, 0.25, 9, "é"),))
    layout = KeyLayout(channels=4, router="r", target="t", forming=split)
    plan = EpochPlan((StagePlan.of(layout), StagePlan(2)), 7)
    assert EpochPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_the_work_of_formers_is_theirs():
    formed = Formed(0, 40, 2.0), Formed(1, 60, 3.0)
    for told in ([formed, ()], [formed[:1], formed[1:]]):
        receipts = [
            Receipt(0, (), (), tuples=90, cpu_seconds=1.0, formed=told[0]),
            Receipt(1, (), (), tuples=10, cpu_seconds=0.5, formed=told[1]),
        ]
        found = [(each.rows, each.seconds, each.cpu_seconds) for each in channel_work(receipts)]
        assert found == [(40, 2.0, 3.0), (60, 3.0, 3.5)]
