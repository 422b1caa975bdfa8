"""A run with windows, moves of state, late tuples, rejects and retention: OUTPUT CHECKPOINT [takeover]."""

import datetime as dt
import sys

import numpy as np

import penstock as ps
from sessions import interpret, quick_session

EPOCHS = 3
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def rows():
    """A list for each epoch; some tuples are late by far, some have no time."""
    rng = np.random.default_rng(11)
    for epoch in range(EPOCHS):
        seconds = epoch * 4 + rng.random(60) * 4
        seconds[rng.random(60) < 0.1] -= 60
        yield [
            {
                "time": None if rng.random() < 0.05 else START + dt.timedelta(seconds=second),
                "area": f"area {rng.zipf(1.5) % 20}",
                "n": int(rng.integers(0, 1000)),
            }
            for second in seconds
        ]


def query():
    stream = ps.stream(
        "t", "time timestamp, area string, n bigint", "time", source=ps.rows(list(rows())), delay="1 second"
    )
    return stream.group_by("area").window("6 seconds", slide="2 seconds").agg(n=ps.sum("n"), c=ps.count())


def back_and_forth(seen):
    """Two channels and three in turn: some keys of a segment move, the others stay behind a mask."""
    return [ps.Rescale(0, 3 - seen.epoch % 2, "consistent")]


if __name__ == "__main__":
    interpret(quick_session())
    output, checkpoint, *rest = sys.argv[1:]
    query().start(
        ps.parquet(output),
        checkpoint=checkpoint,
        channels=2,
        policy=back_and_forth,
        keep_epochs=1,
        takeover=bool(rest),
    ).wait()
