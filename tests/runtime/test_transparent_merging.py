"""The Cartesian product of 002, Fig. 4 and 5, in four channels, whatever arrives first (section III.E).

The figure's timestamps are lost in the text. These are consistent with all that the section says of them,
steps counted from 0, the window being 3 seconds: C comes at step 4 and removes 0, 2 comes at step 5 and
removes A, and D removes 1 but not 2.

    seconds      0    1    2    3    4    5    6    7
    numbers      0         1              2         3
    letters           A         B    C         D
    step         0    1    2    3    4    5    6    7

Each stream comes from two maps, which are not coordinated; each map gives its own tuples in order, so a
stream is the union of two. As in the section, 2 and B are of the first map, 1 and D of the second. Every
order at CP_3 is tried by tests/joins/test_interleavings.py; here whole runs show some.
"""

import datetime as dt
import itertools
import random

import pytest

import penstock as ps
from oracle import fetched

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECONDS = {"0": 0, "A": 1, "1": 2, "B": 3, "C": 4, "2": 5, "D": 6, "3": 7}
MAPS = {"numbers_0": "02", "numbers_1": "13", "letters_0": "AB", "letters_1": "CD"}
WINDOW = 3
PRODUCT = [
    (number, letter)
    for number, letter in itertools.product("0123", "ABCD")
    if abs(SECONDS[number] - SECONDS[letter]) <= WINDOW
]
#  At CP_3, that is for (1, 2) and (B, D), the order of arrival is 1, 2, D, B:
#
#    epoch        0    1    2    3    4    5    6    7
#    numbers_0    0              2
#    numbers_1              1                        3
#    letters_0         A                        B
#    letters_1                        C    D
ARRIVAL = "0A12CDB3"


def product(arrival):
    """The product of both streams, one tuple an epoch in the order of arrival."""
    halves = {}
    for name, values in MAPS.items():
        epochs = [
            [{"time": START + dt.timedelta(seconds=SECONDS[each]), "value": each}] if each in values else []
            for each in arrival
        ]
        given = ps.stream(name, "time timestamp, value string", time="time", source=ps.rows(epochs))
        halves[name] = given.select(mapped="upper(value)")
    numbers = halves["numbers_0"].union(halves["numbers_1"])
    letters = halves["letters_0"].union(halves["letters_1"])
    return numbers.cross(letters, within=f"{WINDOW} seconds", suffixes=("_number", "_letter"))


def run(arrival, folder, **options):
    """The pairs that are delivered, sorted, and how many tuples were late."""
    sink = ps.memory()
    started = product(arrival).start(sink, checkpoint=folder, channels=4, **options)
    started.wait()
    rows = sink.table().to_pylist()
    return sorted((row["mapped_number"], row["mapped_letter"]) for row in rows), started.counts.late


def interleaving(seed):
    """A random order of arrival in which each map's tuples keep theirs."""
    waiting = [list(values) for values in MAPS.values()]
    rng = random.Random(seed)
    return "".join(
        rng.choice([each for each in waiting if each]).pop(0) for _ in range(sum(map(len, waiting)))
    )


def test_the_window_of_the_serial_product_is_trimmed_as_in_figure_5():
    held = []
    for each in sorted(SECONDS, key=SECONDS.get):
        held = [other for other in held if SECONDS[each] - SECONDS[other] <= WINDOW] + [each]
        if each == "C":
            assert "0" not in held
            assert "1" in held
        if each == "2":
            assert "A" not in held
            assert "B" in held
        if each == "D":
            assert "1" not in held
            assert "2" in held
    assert ("1", "B") in PRODUCT


def test_transparent_merging_gives_the_pair_that_the_arrival_order_would_lose(spark, tmp_path):
    pairs, late = run(ARRIVAL, tmp_path)
    assert ("1", "B") in pairs
    assert pairs == PRODUCT
    assert late == 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_transparent_merging_does_not_depend_on_the_order_of_arrival(spark, tmp_path, seed):
    arrival = interleaving(seed)
    assert run(arrival, tmp_path) == (PRODUCT, 0), arrival


def test_best_effort_counts_the_tuple_that_comes_too_late_and_keeps_it_aside(spark, tmp_path):
    pairs, late = run(ARRIVAL, tmp_path, merging="best effort")
    assert ("1", "B") not in pairs
    assert set(pairs) < set(PRODUCT)
    aside = fetched(f"SELECT value FROM '{tmp_path}/late/*/*.parquet'")
    assert ("B",) in aside
    assert late == len(aside)
