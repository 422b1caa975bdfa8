"""Random graphs one after the other, rescaled all the time; killed at any moment and begun again.

HOME FIRST COUNT: a graph has a folder of its own in HOME, with a file of its counts once it has ended.
"""

import json
import sys
from pathlib import Path

import penstock as ps
from graphs.build import relations
from graphs.generate import generate
from rescales import AtRandom
from sessions import interpret, quick_session


def run(seed: int, home: Path) -> None:
    """Run the graph of a seed to its end, from wherever it was."""
    graph = generate(seed)
    outputs = relations(graph)
    stages = sum(node.stateful for node in graph.nodes)
    (home / "began").touch()
    started = ps.outputs(*outputs).start(
        *(ps.parquet(str(home / "out" / str(place))) for place in range(len(outputs))),
        checkpoint=str(home / "state"),
        channels=graph.channels * max(1, stages),
        strategy=graph.strategy,
        policy=AtRandom(seed, every=2, most=6),
    )
    started.wait()
    counts = {"late": started.counts.late, "rejected": started.counts.rejected}
    (home / "counts").write_text(json.dumps({**counts, "moves": len(started.decisions)}))


def main() -> None:
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    interpret(quick_session("local[2]"))
    (folder / "ready").touch()
    for seed in range(first, first + count):
        home = folder / str(seed)
        home.mkdir(exist_ok=True)
        if not (home / "counts").exists():
            run(seed, home)


if __name__ == "__main__":
    main()
