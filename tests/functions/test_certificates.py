"""Every form of every function against Spark: type, values and errors, over edge values and random ones."""

import random

import pytest

from functions.calls import calls_of, casts
from functions.compositions import compositions
from functions.differences import differences
from functions.values import frame_of, table_of_values
from penstock.functions import FUNCTIONS
from sessions import interpreting

SEED = 20261117


@pytest.fixture(scope="module")
def interpreted(spark):
    with interpreting(spark):
        yield spark


def _given(spark, rows):
    table = table_of_values(random.Random(SEED), rows)
    return frame_of(spark, table), table


@pytest.fixture(scope="module")
def many(interpreted):
    return _given(interpreted, 150)


@pytest.fixture(scope="module")
def some(interpreted):
    return _given(interpreted, 50)


@pytest.mark.parametrize("group", sorted({each.group for each in FUNCTIONS.values()} | {"cast"}))
def test_every_form_has_the_type_the_values_and_the_errors_of_spark(group, many):
    print("seed", SEED)  # noqa: T201 -- a failure shows it
    chance = random.Random(f"{SEED} {group}")
    functions = [each for each in FUNCTIONS.values() if each.group == group]
    texts = (
        list(casts()) if group == "cast" else [text for each in functions for text in calls_of(each, chance)]
    )
    wrong = differences(texts, *many)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", [0, *(pytest.param(each, marks=pytest.mark.soak) for each in range(1, 18))])
def test_compositions_have_the_type_the_values_and_the_errors_of_spark(part, some):
    print("seed", SEED, part)  # noqa: T201 -- a failure shows it
    chance = random.Random(f"{SEED} {part}")
    wrong = differences(compositions(300, chance), *some, certified=False)
    assert not wrong, "\n".join(wrong)
