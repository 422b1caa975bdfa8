import re
from pathlib import Path

import pyarrow as pa

GUIDE = Path(__file__).parents[2] / "docs" / "query.md"


def test_every_block_of_the_guide_runs():
    # Blocks of python only build relations; those of py would start Spark.
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, GUIDE.name, "exec"), names)
    assert names["fraud"].schema.names == ("time", "caller", "x", "x_again")
    assert names["durations"].schema.names == ("window_start", "window_end", "seconds", "calls")
    batch = pa.record_batch({"caller": ["a"], "x": [3.0], "y": [4.0]})
    assert names["distance"](batch).to_pylist() == [{"caller": "a", "far": 5.0}]
