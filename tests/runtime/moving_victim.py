"""A run that is rescaled all the time and may be killed at any epoch_id.

INPUT OUTPUT CHECKPOINT SEED PLACES: which of the relations run, as digits. With the seed "never" it keeps its
channels.
"""

import sys

import penstock as ps
from processes import Running, Sessions
from rescales import AtRandom
from runtime.reports import reports
from sessions import interpret, quick_session

ALL = "012345"


def relations(path):
    """Outer joins, windows beside one and alone, sessions that time out, statistics of every key."""
    source = reports(path)
    fast, slow = source.where("speed > 60").select("area", "time", "n"), source.where("n % 7 = 1")
    pairs = fast.join(slow, "area", within="2 seconds", how="left", suffixes=("", "_2"))
    paired = pairs.group_by("area").window("20 seconds", slide="1 second")
    areas = source.group_by("area").window("20 seconds", slide="3 seconds").agg(n=ps.sum("n"))
    last = slow.join(fast, "area", last=2, how="full", suffixes=("", "_2"))
    kept = {"state": {"n": "bigint", "total": "bigint"}, "result": "n bigint, total bigint"}
    values = source.select("time", "area", v="n").group_by("area")
    return (
        pairs.select("time", "area", "n", "speed"),
        paired.agg(pairs=ps.count(), top=ps.max("n")),
        areas,
        last.select("time", "area", "n", "n_2"),
        values.process(Sessions(), timeout="1 second", **kept),
        values.process(Running(), **kept),
    )


def start(source, sink, checkpoint, seed, places=ALL):
    """The run, rescaled after every epoch or never."""
    most = 16 if places == ALL else 4
    policy = None if seed == "never" else AtRandom(int(seed), every=1, most=most)
    made, sinks = relations(source), [ps.parquet(f"{sink}/{place}") for place in places]
    query = ps.outputs(*(made[int(place)] for place in places))
    return query.start(
        *sinks, checkpoint=checkpoint, channels=2 * len(places), policy=policy, most_moved=30_000
    )


if __name__ == "__main__":
    interpret(quick_session())
    start(*sys.argv[1:]).wait()
