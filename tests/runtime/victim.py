"""A run that may be killed at any moment: python victim.py INPUT OUTPUT CHECKPOINT."""

import sys

import penstock as ps


def query(path):
    reports = ps.stream(
        "reports",
        "time timestamp, area string, speed double, n bigint",
        time="time",
        delay="3 seconds",
        source=ps.files(path, files_per_epoch=1),
    )
    return (
        reports.where("n % 10 != 3")
        .group_by("area")
        .window("20 seconds", slide="3 seconds")
        .agg(
            reports=ps.count(),
            total=ps.sum("n"),
            mean=ps.avg("speed"),
            top=ps.max("speed"),
            newest=ps.last("n"),
            areas=ps.min("area"),
        )
    )


if __name__ == "__main__":
    source, sink, checkpoint = sys.argv[1:]
    query(source).start(ps.parquet(sink), checkpoint=checkpoint).wait()
