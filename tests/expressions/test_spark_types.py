"""The table of refused types against a session: a few entries here, all of them in a soak."""

import random

import pytest

from expressions import spark_signatures
from penstock.expressions import spark_types

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


def test_every_type_has_a_letter():
    plain = "boolean tinyint smallint int bigint float double decimal(3,1) string binary date timestamp"
    kinds = f"{plain} timestamp_ntz array<int> map<int,int> struct<a:int>"
    assert {spark_types.letter_of(each) for each in kinds.split()} == set(spark_types.LETTERS)
