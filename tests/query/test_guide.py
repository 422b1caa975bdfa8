import re
from pathlib import Path

import pyarrow as pa

DOCS = Path(__file__).parents[2] / "docs"


def run_blocks(page):
    # Blocks of python only build relations; those of py would start Spark.
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_every_block_of_the_guide_runs():
    names = run_blocks("query.md")
    assert names["fraud"].schema.names == ("time", "caller", "x", "x_again")
    assert names["durations"].schema.names == ("window_start", "window_end", "seconds", "calls")
    batch = pa.record_batch({"caller": ["a"], "x": [3.0], "y": [4.0]})
    assert names["distance"](batch).to_pylist() == [{"caller": "a", "far": 5.0}]


def test_every_block_about_keyed_functions_runs():
    names = run_blocks("process.md")
    assert names["same"].schema.names == names["sessions"].schema.names == ("time", "user", "pages")
