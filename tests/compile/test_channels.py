import pytest

import penstock as ps
from compile.calls import calls, cdr_query, suspects
from penstock.compile.channels import channels_of
from penstock.compile.stages import cut
from penstock.errors import BadRouting
from penstock.query import outputs as query_of


def test_stages_get_channels_by_their_cost():
    assert channels_of(cut(query_of(cdr_query())), 10, {0: 4e-6, 1: 1e-6}) == (8, 2)


def test_the_rate_counts_as_much_as_the_cost():
    assert channels_of(cut(query_of(cdr_query())), 10, {0: 4e-6, 1: 1e-6}, {0: 1.0, 1: 4.0}) == (5, 5)


def test_without_measurement_all_weigh_the_same():
    assert channels_of(cut(query_of(cdr_query())), 10, {}) == (5, 5)
    assert channels_of(cut(query_of(cdr_query())), 10) == (5, 5)


def test_by_the_query_strategy_every_stage_has_all_channels():
    assert channels_of(cut(query_of(cdr_query()), "query"), 6, {0: 9e-6, 1: 1e-6}) == (6, 6)


def test_a_merged_stage_shares_channels_and_adds_to_the_load():
    pairs = calls().join(suspects(), "phone", within="1 hour")
    by_phone = pairs.group_by("phone").window("1 hour").agg(n=ps.count())
    last = by_phone.group_by("n").window("1 hour").agg(phones=ps.count())
    assert channels_of(cut(query_of(last)), 8, {0: 1e-6, 1: 2e-6, 2: 1e-6}) == (6, 6, 2)


def test_what_cannot_be_parted_gets_one_channel():
    pairs = calls().cross(suspects(), within="1 hour", how="left", suffixes=("", "_2"))
    found = cut(query_of(pairs.window("1 hour").agg(n=ps.count()), cdr_query()))
    assert channels_of(found, 10, {0: 9e-6, 1: 9e-6, 2: 1e-6, 3: 3e-6}) == (1, 1, 2, 6)


def test_too_few_channels_are_refused():
    with pytest.raises(BadRouting, match="1 channels for 2 stages"):
        channels_of(cut(query_of(cdr_query())), 1)
    with pytest.raises(BadRouting, match="give 1 or more"):
        channels_of(cut(query_of(cdr_query()), "query"), 0)
