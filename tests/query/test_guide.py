import re
from pathlib import Path

import pyarrow as pa
import pytest

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"


def names_of(page):
    """What the blocks of a page define; those of python build relations, those of py would start Spark."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_every_block_of_the_guide_runs():
    names = names_of("query.md")
    assert names["fraud"].schema.names == ("pair_time", "caller", "x", "x_again")
    assert names["durations"].schema.names == ("window_start", "window_end", "seconds", "calls")
    batch = pa.record_batch({"caller": ["a"], "x": [3.0], "y": [4.0]})
    assert names["distance"](batch).to_pylist() == [{"caller": "a", "far": 5.0}]


def test_every_block_about_keyed_functions_runs():
    names = names_of("process.md")
    assert names["same"].schema.names == names["sessions"].schema.names == ("time", "user", "pages")


def test_the_example_of_gates_is_a_query():
    names = names_of("sources-and-sinks.md")
    assert names["speeds"].schema.names == ("window_start", "window_end", "vehicle", "reports", "mean")


@pytest.mark.parametrize("name", ["own_sink", "own_source"])
def test_the_examples_of_own_sinks_and_sources_are_those_of_the_contract_suites(name):
    _, code = (TESTS / "connect" / f"{name}.py").read_text().split('"""\n\n', 1)
    assert f"```python\n{code}```" in (DOCS / "sources-and-sinks.md").read_text()
