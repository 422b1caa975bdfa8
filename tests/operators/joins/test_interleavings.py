"""The tuples 1, 2, B and D at CP_3 of [002] Fig. 4, in every order and in every cut into epochs.

seconds      2    3    5    6        each is of a map of its own: a side has reached the time that
numbers      1         2             both of its maps have reached, and nothing before both have come
letters           B         D        (transparent merging, [002] §III.E)
"""

import itertools

import pyarrow as pa
import pytest

from operators.joins.epochs import Epoch, run
from penstock.operators.joins.spec import END, Frontiers, JoinSpec, Pair, Side, Within

SECONDS = {"1": 2, "B": 3, "2": 5, "D": 6}
SCHEMA = pa.schema({"t": pa.int64(), "value": pa.string()})
PRODUCT = JoinSpec(
    Side("t", columns=(("value", "number"),)), Side("t", columns=(("value", "letter"),)), Within(3), time="t"
)


def reached(arrived, maps):
    return min(SECONDS[each] for each in maps) if set(maps) <= set(arrived) else None


def table(values):
    return pa.Table.from_pylist([{"t": SECONDS[each], "value": each} for each in values], schema=SCHEMA)


def epochs(order, cuts):
    edges = [0, *cuts, len(order)]
    made = []
    for start, stop in itertools.pairwise(edges):
        new = order[start:stop]
        numbers, letters = ([each for each in new if each in side] for side in ("12", "BD"))
        after = Frontiers(reached(order[:stop], "12"), reached(order[:stop], "BD"))
        made.append(Epoch(Pair(table(numbers), table(letters)), after))
    return [*made, Epoch(Pair(table([]), table([])), Frontiers(END, END))]


@pytest.mark.parametrize("order", list(map("".join, itertools.permutations(SECONDS))))
def test_every_order_and_every_cut_gives_the_serial_product(order):
    for count in range(len(order)):
        for cuts in itertools.combinations(range(1, len(order)), count):
            delivered, _ = run(PRODUCT, epochs(order, cuts))
            pairs = [(row["number"], row["letter"]) for each in delivered for row in each.to_pylist()]
            assert sorted(pairs) == [("1", "B"), ("2", "B"), ("2", "D")], cuts
