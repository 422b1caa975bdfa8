"""Of columnar files Spark reads the columns that a query asks for, of others the whole record."""

from concurrent.futures import Future

import pytest

from penstock.runtime.spark.plans import planned_files

WIDE = "SELECT id AS a, id + 1 AS b, cast(id AS string) AS c FROM range(5)"


def offered(spark, tmp_path, form, take):
    """What `take` makes of the first epoch of a file stream and of a union with itself."""
    spark.sql(WIDE).write.format(form).save(str(tmp_path / "in"))
    stream = spark.readStream.schema("a bigint, b bigint, c string").format(form).load(str(tmp_path / "in"))
    numbered = [stream.selectExpr(f"{number} AS n", "a", "b", "c") for number in (0, 1)]
    found = []
    for place, frame in enumerate([stream, numbered[0].unionAll(numbered[1])]):
        started = Future()

        def epoch(rows, _number, started=started):
            found.append(take(planned_files(rows, started.result())))

        writer = frame.writeStream.foreachBatch(epoch).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / str(place))).start()
        started.set_result(query)
        query.awaitTermination()
    return found


def test_a_column_that_nobody_asks_for_is_not_read(spark, tmp_path):
    def take(branches):
        sums = []
        for _, rows in branches:
            asked = rows.where("b > 2").selectExpr("sum(a) AS s")
            assert "ReadSchema: struct<a:bigint,b:bigint>" in asked._jdf.queryExecution().toString()
            sums.append((asked.collect()[0]["s"], rows.count()))
        return sums

    assert offered(spark, tmp_path, "parquet", take) == [[(9, 5)], [(9, 5), (9, 5)]]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_records_in_text_are_read_as_a_whole(spark, tmp_path, form):
    assert offered(spark, tmp_path, form, len) == [0, 0]
