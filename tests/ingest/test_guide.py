import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "clients.md"


def test_every_block_of_the_guide_runs(gate):
    # Blocks of py only show arguments.
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block.replace("127.0.0.1:7400", gate.address), GUIDE.name, "exec"), names)
    assert names["acknowledged"] == 1
    assert names["each_acknowledged"] == [1] * 10
    assert names["state"] == (gate.address, 1, 1, 0, 0)
    assert names["client"].sequence == 1
