"""A driver's delivery of one epoch to a Delta table: python delta_victim.py TABLE ROWS."""

import sys
from pathlib import Path

import pyarrow as pa

import penstock as ps
from penstock.connect import Begins, EpochId, SinkContext
from penstock.connect.results import ResultFile, Results
from penstock.state.storage import Location

SCHEMA = pa.schema([("n", pa.int64())])


def opened(table, owner, last):
    """The sink as a run opens it that begins after an epoch."""
    sink = ps.delta(table)
    context = SinkContext(
        id="checkpoint-0",
        name="a query",
        schema=SCHEMA,
        folder=Location(str(table)),
        session=None,
        begins=Begins(EpochId(last), owner=owner),
    )
    return sink, sink.open(context)


def deliver(table, rows, owner=1, epoch=1):
    """Write a file as a channel does, and deliver it as the results of an epoch."""
    sink, delivery = opened(table, owner, epoch - 1)
    target = sink.writes(None)
    file = ResultFile(target, SCHEMA)
    file.write(pa.table({"n": range(rows)}, schema=SCHEMA))
    file.close()
    delivery.deliver(EpochId(epoch), Results(EpochId(epoch), SCHEMA, target, (file.receipt(),)))


if __name__ == "__main__":
    deliver(Path(sys.argv[1]), int(sys.argv[2]))
