"""Random query graphs deliver the same before and after they are rewritten."""

import dataclasses
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compile.reverted import reverted
from graphs.accepted import judge
from graphs.batch import evaluate
from graphs.build import relations
from graphs.compare import assert_alike
from graphs.expressions import condition
from graphs.generate import generate, sketched
from graphs.graph import Node, Select, Where, selected
from penstock.compile import optimise
from penstock.query import outputs as query_of
from sessions import interpreting


@pytest.fixture(scope="module", autouse=True)
def interpreted(spark):
    with interpreting(spark):
        yield spark


def with_filters(graph, rng):
    """The last output alone, behind conditions on its columns and a select of some, so that much can move."""
    nodes, place = list(graph.nodes), max(graph.outputs)
    for _ in range(rng.randint(1, 2)):
        given = nodes[place]
        # Few conditions, since nothing can be wrong with a result without rows.
        texts = " AND ".join(f"({condition(rng, given.columns)})" for _ in range(rng.choice([1, 1, 2])))
        nodes.append(Node(Where(texts), (place,), given.columns, given.time, given.pinned))
        names = tuple(rng.sample(given.names, rng.randint(1, len(given.names))))
        nodes.append(selected(nodes, len(nodes) - 1, Select(names), {}))
        place = len(nodes) - 1
    return dataclasses.replace(graph, nodes=tuple(nodes), outputs=(place,))


def check(graph):
    accepted = judge(graph).accepted
    rewritten = optimise(query_of(*relations(graph))).query
    # In this order, for the oracle remembers what the generator has evaluated last.
    expected = evaluate(graph, accepted)
    # Which windows a late tuple counts in follows from the epochs.
    found = evaluate(dataclasses.replace(reverted(rewritten), epochs=graph.epochs), accepted)
    for place, one, other in zip(graph.outputs, found, expected, strict=True):
        assert_alike(one, other, graph.nodes[place].columns)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 10**9))
def test_a_rewritten_query_delivers_the_same(seed):
    check(generate(seed))


@settings(max_examples=24, deadline=None, derandomize=True)
@given(st.integers(0, 10**9))
def test_what_moves_down_changes_nothing(seed):
    check(with_filters(generate(seed), Random(seed)))


@pytest.mark.soak
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_what_moves_down_changes_nothing_in_two_hundred_queries(seed):
    graph = generate(seed)
    check(graph)
    check(with_filters(graph, Random(seed)))


def test_a_second_rewriting_finds_nothing_to_move():
    for seed in range(30):
        once = optimise(query_of(*relations(with_filters(sketched(seed), Random(seed))))).query
        assert optimise(once).query is once, seed
