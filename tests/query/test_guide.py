import re
from pathlib import Path

import pyarrow as pa

DOCS = Path(__file__).parents[2] / "docs"


def names_of(page):
    """What the blocks of a page define; those of python build relations, those of py would start Spark."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_every_block_of_the_guide_runs():
    names = names_of("query.md")
    assert names["fraud"].schema.names == ("time", "caller", "x", "x_again")
    assert names["durations"].schema.names == ("window_start", "window_end", "seconds", "calls")
    batch = pa.record_batch({"caller": ["a"], "x": [3.0], "y": [4.0]})
    assert names["distance"](batch).to_pylist() == [{"caller": "a", "far": 5.0}]


def test_every_block_about_keyed_functions_runs():
    names = names_of("process.md")
    assert names["same"].schema.names == names["sessions"].schema.names == ("time", "user", "pages")


def test_the_example_of_sources_is_a_query():
    names = names_of("sources.md")
    assert names["speeds"].schema.names == ("window_start", "window_end", "vehicle", "reports", "mean")
