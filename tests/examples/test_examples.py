import importlib.util
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from penstock_lab.workloads import CallRecords

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"linear_road": ["--seconds", "30"]}
FIRST_STAGES = {"linear_road": ("stage 0: group_by(vid).process",)}


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Fewer than a reader gets to see: the results do not depend on it, and an epoch is what a run costs.
    module.EPOCHS = 3
    return module


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_explains_its_plan(path, capsys):
    load(path.stem).main([*SMALL.get(path.stem, ["--calls", "100"]), "--explain"])
    shown = capsys.readouterr().out
    first = FIRST_STAGES.get(path.stem, ("stage 0: join", "stage 0: group_by(caller).process"))
    assert any(each in shown for each in first)


def test_durations_are_what_a_batch_engine_counts(spark, capsys):
    found = load("call_durations").main(["--calls", "4000", "--channels", "3"])
    records = CallRecords(4000, seconds=3600, phones=20_000)
    with duckdb.connect() as engine:
        engine.register("calls", records.table)
        engine.register("suspects", records.suspects)
        expected = engine.execute(
            """SELECT epoch_us(stop - start + TIMESTAMP '1970-01-01') // 60000000, count(*)
               FROM calls JOIN suspects ON caller = number
               AND abs(epoch_us(calls.time) - epoch_us(suspects.time)) <= 600000000 GROUP BY 1"""
        ).fetchall()
    assert found == Counter(dict(expected))
    assert found.total() > 50
    assert "calls of suspicious numbers" in capsys.readouterr().out


def test_every_planted_fraud_is_found_and_nobody_is_accused_wrongly(spark, capsys):
    verdict = load("fraud").main(["--calls", "5000", "--channels", "3"])
    assert verdict.found == verdict.planted == 5
    assert verdict.wrong == 0
    assert verdict.pairs >= 5
    assert "5 of 5 planted frauds" in capsys.readouterr().out


def test_sittings_are_the_sessions_of_a_batch_engine(spark, capsys):
    found = load("sessions").main(["--calls", "4000", "--channels", "3"])
    records = CallRecords(4000, seconds=3600, phones=20_000)
    with duckdb.connect() as engine:
        engine.register("calls", records.table)
        expected = engine.execute(
            """WITH marked AS (
                   SELECT caller, epoch_us(time) AS t, t - lag(t, 1, 0) OVER w >= 300000000 AS begins
                   FROM calls WINDOW w AS (PARTITION BY caller ORDER BY t)
               ), numbered AS (
                   SELECT *, sum(begins::int) OVER (PARTITION BY caller ORDER BY t) AS number FROM marked
               )
               SELECT caller, max(t) + 300000000, count(*) FROM numbered GROUP BY caller, number
               HAVING count(*) > 1"""
        ).fetchall()
    told = [(row["caller"], round(row["time"].timestamp() * 1e6), row["calls"]) for row in found]
    assert sorted(told) == sorted(expected)
    assert len(told) > 50
    assert "sittings with more than one call" in capsys.readouterr().out
