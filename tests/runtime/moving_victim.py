"""A run that is rescaled all the time and may be killed at any moment: INPUT OUTPUT CHECKPOINT SEED.

With the seed "never" it keeps its channels.
"""

import sys

import penstock as ps
from rescales import AtRandom


def query(path):
    """A left outer join within a distance, windows beside it, and windows of windows."""
    reports = ps.stream(
        "reports",
        "time timestamp, area string, speed double, n bigint",
        time="time",
        delay="3 seconds",
        source=ps.files(path, files_per_epoch=1),
    )
    fast, slow = reports.where("speed > 60").select("area", "time", "n"), reports.where("n % 7 = 1")
    pairs = fast.join(slow, "area", within="2 seconds", how="left", suffixes=("", "_2"))
    beside = (
        pairs.group_by("area").window("20 seconds", slide="1 second").agg(pairs=ps.count(), top=ps.max("n"))
    )
    areas = reports.group_by("area").window("20 seconds", slide="3 seconds").agg(n=ps.sum("n"))
    last = slow.join(fast, "area", last=2, how="full", suffixes=("", "_2"))
    return ps.outputs(
        pairs.select("time", "area", "n", "speed"), beside, areas, last.select("time", "area", "n", "n_2")
    )


def start(source, sink, checkpoint, seed):
    """The run, rescaled after every epoch or never."""
    policy = None if seed == "never" else AtRandom(int(seed), every=1)
    sinks = [ps.parquet(f"{sink}/{place}") for place in range(4)]
    return query(source).start(*sinks, checkpoint=checkpoint, channels=9, policy=policy, most_moved=30_000)


if __name__ == "__main__":
    start(*sys.argv[1:]).wait()
