"""The table of refused types against a session: a few entries here, all of them in a soak."""

import random
from itertools import product

import pytest

from expressions import spark_signatures
from penstock.expressions import spark_types
from penstock.functions.function import FUNCTIONS

ALWAYS = {"not", "+", "cast"}
SEED = random.randrange(10**6)


def _table(names):
    found = {}
    for entry in spark_types._REFUSED.split():
        head, _, text = entry.partition(":")
        name, _, count = head.rpartition("/")
        if name in names:
            found[name, count] = text
    return found


def test_entries_are_what_spark_refuses(spark):
    print("seed", SEED)  # noqa: T201 -- a failure shows it
    known = sorted({name for name, _ in spark_types._table()})
    names = ALWAYS | set(random.Random(SEED).sample(known, 3))
    assert spark_signatures.refused_by(spark, names) == _table(names), f"seed {SEED}: run make functions"


@pytest.mark.soak
def test_the_whole_table_is_what_spark_refuses(spark):
    assert spark_signatures.written(spark) == spark_signatures.TABLE.read_text(), "run make functions"


PLAIN = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,2)",
    "string",
    "binary",
    "date",
    "timestamp",
]


def test_every_type_has_a_letter():
    kinds = [*PLAIN, "timestamp_ntz", "array<int>", "map<int,int>", "struct<a:int>"]
    assert {spark_types.letter_of(each) for each in kinds} == set(spark_types.LETTERS)


def test_nothing_is_refused_that_a_channel_is_certified_for():
    tried = [
        (name, given)
        for name, function in FUNCTIONS.items()
        for form in function.forms
        for count in (1, 2, 3)
        for given in product([*PLAIN, "timestamp_ntz"], repeat=count)
        if _result(form, given) is not None
    ]
    assert len(tried) > 2000
    assert [each for each in tried if spark_types.refuses(*each)] == []


def _result(form, given):
    try:
        return form.result(list(given))
    except (IndexError, ValueError):
        return None
