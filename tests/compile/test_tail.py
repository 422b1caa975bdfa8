"""Steps in channels: what is evaluated, and what is only passed on."""

import pyarrow as pa

import penstock as ps
from penstock.compile.tail import compile_tail
from penstock.operators.exchange import TIME

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"], TIME: [7, 8]})


def tail(relation):
    steps = []
    while relation.inputs:
        steps.insert(0, relation.operator)
        (relation,) = relation.inputs
    return compile_tail(tuple(steps), ROWS.schema)


def rows():
    return ps.stream("rows", "time timestamp, a bigint, b string", time="time")


def test_columns_under_other_names_are_passed_on_in_place():
    found = tail(rows().select("a", c="b").select(d="c", e="c", a="a"))
    assert found.pieces[0].passed == ("b", "b", "a", TIME)
    given = found.apply(ROWS)
    assert given.to_pydict() == {"d": ["x", "y"], "e": ["x", "y"], "a": [1, 2], TIME: [7, 8]}
    assert given["a"].chunk(0).buffers()[1].address == ROWS["a"].chunk(0).buffers()[1].address


def test_what_is_computed_or_left_out_is_evaluated():
    for each in (rows().select(c="a + 1"), rows().where("a > 1"), rows().select("a").where("a > 1")):
        assert tail(each).pieces[0].passed is None
    assert tail(rows().select("a").where("a > 1")).apply(ROWS).to_pydict() == {"a": [2], TIME: [8]}
