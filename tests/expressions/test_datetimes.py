"""Patterns of dates and times against Spark, which looks at them when the first row comes."""

import string

import pytest
from pyspark.errors import PySparkException

from penstock.expressions.datetimes import why_bad_pattern

RUNS = [letter * count for letter in string.ascii_letters for count in range(1, 8)]
PATTERNS = [
    *(letter * 2 for letter in "yYMDdEeuwWaVvZTQ"),
    "EEEEE",
    "yyyyyyy",
    "HHH",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyy {MM}",
    "yyyy#MM",
    "[yyyy]",
    "yyyy]",
    "yyyy-DDD",
    "hh:mm a",
]


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize(
    "patterns", [PATTERNS, pytest.param(RUNS, marks=pytest.mark.soak)], ids=["some", "every run of letters"]
)
def test_patterns_are_refused_if_spark_refuses_them(spark, patterns, read):
    frame = spark.sql("SELECT '2020-01-02' AS text, TIMESTAMP'2020-01-02 03:04:05' AS time FROM range(1)")
    call = "try_to_timestamp(text, {})" if read else "date_format(time, {})"
    differ = []
    for each in patterns:
        literal = "'" + each.replace("'", "\\'") + "'"
        try:
            frame.selectExpr(call.format(literal)).collect()
            taken = True
        except PySparkException:
            taken = False
        if taken != (why_bad_pattern(each, read=read) is None):
            differ.append(each)
    assert not differ
