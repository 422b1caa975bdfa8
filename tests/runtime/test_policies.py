"""What may be asked for: a rescale is checked when it is made, and no policy can end a run."""

from hypothesis import given

import penstock as ps
from junk import JUNK
from penstock.errors import BadRescale
from penstock.query import MOST_CHANNELS
from penstock.routing import PARTITIONINGS
from penstock.runtime.rescale.policies import guarded

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


@given(JUNK)
def test_a_policy_can_return_anything_and_only_wishes_pass(answer):
    def check(wish):
        if not isinstance(wish, ps.Rescale):
            raise BadRescale("not a wish")

    assert guarded(lambda _: answer, check)(SEEN) == []


def test_a_policy_that_raises_asks_for_nothing(caplog):
    assert guarded(lambda _: 1 / 0, lambda _: None)(SEEN) == []
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("penstock.run", "ERROR")
    assert "epoch 3: the policy failed" in record.message
