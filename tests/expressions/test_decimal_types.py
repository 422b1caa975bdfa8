"""Types of arithmetic with decimals, stated only as Spark states them."""

from itertools import product

from penstock.expressions.scalar import scalar
from penstock.expressions.schema import Schema

COLUMNS = (
    "a tinyint, b smallint, c int, d bigint, e decimal(2,1), f decimal(10,2), g decimal(38,10), h double"
)
VALUES = [*"abcdefgh", "10", "(7)", "1.5", "0", "2147483648", "-3", "- c"]


def test_sums_differences_and_products_have_the_types_of_spark(spark):
    texts = [f"{one} {sign} {other}" for one, sign, other in product(VALUES, "+-*%", VALUES)]
    texts += ["(e + 10) * 2", "e + c * 2", "e * f + 1"]
    schema = Schema.parse(COLUMNS)
    named = [f"{text} AS c{place}" for place, text in enumerate(texts)]
    found = spark.createDataFrame([], COLUMNS).selectExpr(*named).schema
    known = [
        (text, scalar(text, schema).type, each.dataType.simpleString())
        for text, each in zip(texts, found, strict=True)
    ]
    assert [each for each in known if each[1] not in {None, each[2]}] == []
    assert scalar("e + 10", schema).type == "decimal(4,1)"
