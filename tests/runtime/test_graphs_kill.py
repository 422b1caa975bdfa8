"""Random graphs whose driver is killed at random moments while they are rescaled: what a batch engine gives.

`PENSTOCK_SEED` replays a soak, `PENSTOCK_MINUTES` says how long it takes.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compile.reverted import judged_late
from graphs.accepted import judge
from graphs.batch import evaluate
from graphs.build import rows_of
from graphs.compare import assert_alike
from graphs.generate import generate
from runtime.test_kill import kill, manifests
from sessions import interpreting

VICTIM = Path(__file__).with_name("graphs_victim.py")
MANY = 10_000


def begin(home: Path, first: int, count: int) -> subprocess.Popen:
    (home / "ready").unlink(missing_ok=True)
    with (home / "log").open("ab") as log:
        command = [sys.executable, str(VICTIM), str(home), str(first), str(count)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def die(process: subprocess.Popen, home: Path, seconds: float) -> bool:
    """Kill a driver so long after it was ready; whether it still ran."""
    while process.poll() is None and not (home / "ready").exists():
        time.sleep(0.02)
    ends = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < ends:
        time.sleep(0.02)
    if process.poll() is not None:
        assert process.returncode == 0, (home / "log").read_text()[-6000:]
        return False
    kill(process)
    return True


def check(home: Path, seed: int) -> int:
    """What the graph of a seed has delivered and set aside; the number of its moves since the last kill."""
    graph, counts = generate(seed), json.loads((home / "counts").read_text())
    judged = judge(graph)
    expected = evaluate(graph, judged.accepted)
    for number, (place, wanted) in enumerate(zip(graph.outputs, expected, strict=True)):
        node = graph.nodes[place]
        # Their names begin with the epoch.
        files = sorted((home / "out" / str(number)).glob("*.parquet"))
        tables = [pq.read_table(each) for each in files]
        found = rows_of(pa.concat_tables(tables), node) if tables else []
        assert_alike(found, wanted, node.columns)
    late = judged.late + judged_late(graph)
    assert (counts["late"], counts["rejected"]) == (late, judged.rejected)
    return counts["moves"]


def ended(home: Path) -> list[int]:
    return sorted(int(each.parent.name) for each in home.glob("*/counts"))


def test_a_killed_graph_gives_what_a_batch_engine_gives(spark, tmp_path):
    seed = 11
    process = begin(tmp_path, seed, 1)
    while process.poll() is None and not manifests(tmp_path / str(seed)):
        time.sleep(0.01)
    kill(process)
    assert begin(tmp_path, seed, 1).wait() == 0, (tmp_path / "log").read_text()[-6000:]
    with interpreting(spark):
        check(tmp_path / str(seed), seed)


@pytest.mark.soak
def test_graphs_give_what_a_batch_engine_gives_after_kills_at_any_moment(spark, tmp_path):
    seed = int(os.environ.get("PENSTOCK_SEED", random.SystemRandom().randrange(10**6)))
    minutes = float(os.environ.get("PENSTOCK_MINUTES", "60"))
    print(f"seed {seed}, {minutes:.0f} minutes")  # noqa: T201
    chance, ends = random.Random(seed), time.monotonic() + 60 * minutes
    kills, moves, judged = 0, 0, set()
    process = begin(tmp_path, seed, MANY)
    with interpreting(spark):
        while time.monotonic() < ends:
            kills += die(process, tmp_path, chance.expovariate(1 / 10))
            done = [each for each in ended(tmp_path) if each not in judged]
            process = begin(tmp_path, seed, MANY)
            for each in done:
                moves += check(tmp_path / str(each), each)
                judged.add(each)
        kill(process)
    print(f"{len(judged)} graphs, {kills} kills, {moves} moves after the last kill of their graph")  # noqa: T201
    assert kills > minutes
    assert len(judged) > minutes
