"""What `explain` says of each query in `queries.py`, as it was agreed on.

A difference is a change of the plan or of its words. If it is meant, write the files again with
`pytest tests/golden --regold` and read the difference in the commit like any other change.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from golden.queries import CASES

PLANS = Path(__file__).parent / "plans"
SUFFIXES = {"text": ".txt", "mermaid": ".mmd", "json": ".json"}


def outputs_of(relation):
    return getattr(relation, "outputs", None) or (relation,)


def shown(relation, form, options):
    """The plan; in the text form after the query as it prints itself and its columns."""
    plan = relation.explain(form, **options)
    if form != "text":
        return f"{plan}\n"
    columns = [
        f"  {number}: {each.name} {each.type}{'' if each.nullable else ' not null'}"
        for number, output in enumerate(outputs_of(relation))
        for each in output.schema.columns
    ]
    return "\n".join(["query", f"  {relation!r}", "columns", *columns, plan, ""])


@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_as_agreed_on(name, form, request):
    relation, options = CASES[name]
    found, path = shown(relation, form, options), PLANS / f"{name}{SUFFIXES[form]}"
    if request.config.getoption("--regold"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; write it with `pytest tests/golden --regold`"
    assert found == path.read_text(encoding="utf-8")


def test_no_golden_plan_is_left_over():
    known = {f"{name}{suffix}" for name in CASES for suffix in SUFFIXES.values()}
    assert {path.name for path in PLANS.iterdir()} == known


def test_explain_starts_no_spark():
    script = (
        "import sys; from golden.test_golden import CASES, shown\n"
        "for relation, options in CASES.values(): shown(relation, 'text', options)\n"
        "spark = sys.modules.get('pyspark')\n"
        "assert spark is None or spark.SparkContext._gateway is None, 'explain started the JVM'"
    )
    path = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
