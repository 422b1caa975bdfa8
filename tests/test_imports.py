"""What is loaded when: a client or a gate has no use for Spark."""

import subprocess
import sys

import pytest

import penstock
from penstock import aggregates

HEAVY = ("pyspark", "py4j", "pyarrow", "duckdb", "pandas", "sqlglot", "matplotlib", "deltalake")
SPARK = ("pyspark", "py4j", "duckdb", "matplotlib", "deltalake")


def loaded(program):
    """The packages that a fresh interpreter has loaded after the program."""
    last = "import sys; print('\\n', *{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-c", f"{program}\n{last}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines()[-1].split())


def test_the_package_alone_loads_nothing_heavy():
    assert loaded("import penstock; penstock.__version__").isdisjoint(HEAVY)


@pytest.mark.parametrize("command", ["gate", "token", "push", "controller", "state", "demo"])
def test_the_help_of_a_command_loads_nothing_heavy(command):
    program = f"""
import sys
from penstock.cli import main
sys.argv = ["penstock", "{command}", "--help"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
"""
    assert loaded(program).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "program",
    [
        "import penstock; penstock.Client; penstock.AsyncClient; penstock.Directory",
        "import penstock.ingest.gate.process",
        "import penstock.cli.pushing",
    ],
    ids=["clients", "a gate", "penstock push"],
)
def test_the_way_into_a_gate_loads_no_spark(program):
    assert loaded(program).isdisjoint(SPARK)


def test_a_gate_parses_no_sql():
    assert "sqlglot" not in loaded("import penstock.ingest.gate.process")


def test_a_file_is_pushed_without_the_demo():
    loaded("import sys, penstock.cli.pushing; assert 'penstock.demo' not in sys.modules")


def test_writing_a_query_loads_no_spark_and_explaining_it_does():
    query = "import penstock as ps; query = ps.stream('s', 'time timestamp, n int', 'time').where('n > 0')"
    assert loaded(query).isdisjoint({"pyspark", "py4j"})
    assert "pyspark" in loaded(f"{query}; query.explain()")


def test_every_public_name_is_there():
    assert set(penstock.__all__) <= set(dir(penstock))
    for name in [*penstock.__all__, *aggregates.__all__]:
        assert getattr(penstock, name) is not None
        assert name in dir(penstock)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'strem'"):
        _ = penstock.strem


def test_an_import_of_a_missing_extra_says_how_to_get_it():
    """The table is asked for in an interpreter that has no deltalake."""
    program = """
import sys
sys.modules["deltalake"] = None
import penstock as ps
try:
    ps.delta("table").open(None)
except ps.errors.MissingPackage as error:
    assert "pip install 'penstock[delta]'" in str(error), error
else:
    raise AssertionError("no error")
"""
    assert "pyspark" not in loaded(program)
