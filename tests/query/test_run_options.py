"""The options of a run: each is one keyword everywhere, and nothing wrong gets past its check."""

import inspect
import os
from dataclasses import fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.query as ps
from junk import JUNK
from penstock.compile import channels_of, cut
from penstock.errors import BadOption, BadSink, PenstockError
from penstock.query.run_options import MOST_CHANNELS
from penstock.routing import PARTITIONINGS, Resources

STREAM = ps.stream("t", "time timestamp, k string, v double", "time")
PAIRS = STREAM.join(STREAM, "k", within="1 minute", suffixes=("_1", "_2"))
QUERY = ps.outputs(PAIRS.group_by("v_1").window("1 hour").agg(n=ps.count()))
STAGES = 2


def names_and_defaults(function):
    parameters = inspect.signature(function).parameters
    return {name: (each.default, each.annotation) for name, each in parameters.items()}


def test_every_option_is_an_explicit_keyword_of_both_starts():
    options = {each.name: (each.default, each.type) for each in fields(ps.RunOptions)}
    for start, others in ((ps.Query.start, {"self", "sinks"}), (ps.Relation.start, {"self", "sink"})):
        found = names_and_defaults(start)
        assert {name: found[name] for name in found if name not in others} == options
    for name in options:
        assert f"            {name}: " in ps.Query.start.__doc__


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"channels": 2.5}, r"channels=2.5; give a whole number, from 1 to 1,024"),
        ({"channels": True}, "channels=True"),
        ({"channels": 0}, "channels=0"),
        ({"channels": "4"}, "channels='4'"),
        ({"channels": 10**9}, "from 1 to 1,024"),
        ({"most_moved": -1}, "most_moved=-1; give a whole number, 1 or more: the bytes"),
        ({"most_moved": 10**400}, "most_moved=1000"),
        ({"strategy": "x"}, "strategy='x'; give one of subquery, operator, query"),
        ({"strategy": None}, "strategy=None"),
        ({"merging": "fast"}, "give one of transparent, best effort"),
        ({"partitioning": ["scan"]}, "give one of balanced"),
        ({"dealing": "by turns"}, "dealing='by turns'; give one of runs, round robin"),
        ({"policy": 42}, "policy=42; give a function"),
        ({"control": "dry"}, "control='dry'; give one of on, observe, off"),
        ({"limits": 3}, "limits=3; give ps.Limits()"),
        ({"qos": ps.QoS(disorder=3), "disorder": 4}, r"disorder=4 and qos=QoS\(disorder=3\)"),
        ({"qos": "5 seconds"}, r"qos='5 seconds'; give ps.QoS\(latency"),
        ({"trigger": 5}, "trigger=5; give from 0 seconds to 1 day, such as '5 seconds'"),
        ({"trigger": "2 fortnights"}, "trigger='2 fortnights'; give from"),
        ({"trigger": "2 days"}, "trigger='2 days'; give from"),
        ({"alpha": 1}, "alpha=1; give the most load"),
        ({"alpha": (1.2, 1.3)}, "alpha=\\(1.2, 1.3\\); give the most load"),
        ({"sigma": 0}, "sigma=0; give a fraction"),
        ({"on_error": "skip"}, "on_error='skip'; give one of fail, set aside"),
        ({"on_error": None}, "on_error=None"),
        ({"most_errors": 0}, "most_errors=0; give a whole number, from 1 to 1,000,000: the rows of an epoch"),
        ({"most_errors": 1.5}, "most_errors=1.5"),
        ({"costs": 3}, "costs=3; give a dict"),
        ({"costs": {"0": 1.0}}, "costs: stage='0'; give a whole number"),
        ({"costs": {0: -1}}, "costs of stage 0 are -1; give seconds"),
        ({"costs": {0: float("nan")}}, "costs of stage 0 are nan"),
        ({"costs": {0: True}}, "costs of stage 0 are True"),
        ({"resources": {0: "XYZ"}}, "resources of stage 0: resources are 'XYZ'; give three letters"),
        ({"resources": {0: 3}}, "resources of stage 0 are 3"),
        ({"name": ""}, "name=''; give a text"),
        ({"name": "a\nb"}, "printable"),
        ({"name": 7}, "name=7"),
        ({"session": "local"}, "session='local' is str; give a pyspark.sql.SparkSession"),
        ({"checkpoint": ""}, "checkpoint ''; give a path or a URI"),
        ({"checkpoint": 3}, "checkpoint 3"),
        ({"checkpoint": "a\0b"}, "give a path"),
        ({"late": "late"}, "late='late'; tuples are set aside as Parquet files"),
        ({"rejects": ps.memory()}, "rejects=memory"),
    ],
)
def test_what_is_given_is_named_with_what_is_expected(option, reason):
    with pytest.raises((BadOption, BadSink), match=reason):
        QUERY.start(ps.memory(), **option)


def test_every_partitioning_has_its_name_in_the_type():
    assert get_args(ps.PartitioningName) == tuple(PARTITIONINGS)


@pytest.mark.parametrize("option", [{"costs": {2: 1.0}}, {"resources": {2: "LLL"}}])
def test_a_stage_that_the_query_does_not_have(option):
    with pytest.raises(BadOption, match=r"has stage 2; this query has the stages 0 to 1, see explain"):
        ps.RunOptions(**option).check_stages(STAGES)


@pytest.mark.parametrize("sinks", [(ps.memory(), ps.memory()), (ps.memory(),) * 3])
def test_each_relation_has_one_sink(sinks):
    with pytest.raises(BadSink, match="give each relation its own"):
        QUERY.start(*sinks)


def test_a_sink_of_another_class_is_refused():
    with pytest.raises(BadSink, match=r"sink is str; .* your own subclass of ps.Sink"):
        QUERY.start("out")


def test_values_are_plain_once_checked():
    options = ps.RunOptions(
        checkpoint=Path("state"),
        channels=np.int32(4),
        costs={np.int64(0): np.float32(0.5)},
        resources={0: "LQL"},
    )
    assert (options.checkpoint, type(options.channels)) == ("state", int)
    assert options.costs == {0: 0.5}
    assert options.resources == {0: Resources.of("LQL")}


def checked(option, value):
    """The options with this one, or None if it is refused in the right words."""
    try:
        options = ps.RunOptions(**{option: value})
        options.check_stages(STAGES)
    except PenstockError as error:
        if option not in str(error) or not ("give" in str(error) or "the stages" in str(error)):
            raise AssertionError(str(error)) from error
        return None
    return options


@given(st.sampled_from([each.name for each in fields(ps.RunOptions)]), JUNK)
def test_what_passes_the_check_is_what_a_run_can_use(option, value):
    options = checked(option, value)
    if options is None:
        return
    # What the engine does with them later.
    assert options.strategy in ps.STRATEGIES
    assert options.merging in ps.MERGINGS
    assert options.partitioning in PARTITIONINGS
    assert options.checkpoint is None or os.fsencode(options.checkpoint)
    assert options.name is None or options.name.encode()
    assert 0 < options.most_moved / 1.0 < float("inf")
    stages = cut(QUERY, options.strategy)
    total = options.channels if isinstance(options.channels, int) else max(options.channels or (2,))
    shared = channels_of(stages, max(total, STAGES), options.costs)
    assert all(1 <= each <= MOST_CHANNELS for each in shared)
    assert all(isinstance(each, Resources) for each in (options.resources or {}).values())
    assert options.policy is None or callable(options.policy)
    assert all(
        isinstance(each, ps.ParquetSink) for each in (options.late, options.rejects) if each is not None
    )


def test_disorder_is_a_part_of_what_is_asked_of_results():
    for asked in ({"disorder": 3}, {"qos": ps.QoS(disorder=3)}, {"qos": ps.QoS(disorder=3), "disorder": 3}):
        options = ps.RunOptions(**asked)
        assert (options.disorder, options.latency_seconds) == (3, None)
    both = ps.RunOptions(qos=ps.QoS(latency="2 seconds", disorder=0))
    assert (both.disorder, both.latency_seconds) == (0, 2.0)
    with pytest.raises(BadOption, match="asks for nothing"):
        ps.QoS()
    with pytest.raises(BadOption, match="disorder=-1"):
        ps.QoS(disorder=-1)
