"""A client process: python gates_pusher.py CONTROLLER FIRST STREAMS RATE SECONDS REPORT GO.

Pushes the rows n = 0, 1, 2, … of so many streams, RATE a second each; row n happens n / RATE seconds after
the first. After row 0 it waits until the file GO is there. When all rows are acknowledged, the number of
rows of a stream goes into the report.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.ingest import Client, Connection

SCHEMA = pa.schema([("time", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])
EVERY_S = 0.25


def rows(first, last, rate):
    number = np.arange(first, last)
    return pa.record_batch(
        [pa.array(number * 1_000_000 // rate, SCHEMA.field("time").type), number], schema=SCHEMA
    )


def push(address, streams, rate, seconds, go):
    """All rows of the streams, acknowledged; how many each has."""
    with Connection(address) as connection:
        # As many batches a second as one process can send beside all that runs here.
        pause = max(0.1, len(streams) / 500)
        clients = [Client(connection, stream, SCHEMA, sequence=0, batch_seconds=pause) for stream in streams]
        for client in clients:
            client.push(rows(0, 1, rate))
        done = 1
        while not go.exists():
            time.sleep(0.05)
        began = time.monotonic()
        while done < rate * seconds:
            upto = min(max(done, int((time.monotonic() - began) * rate)), int(rate * seconds))
            batch = rows(done, upto, rate)
            for client in clients:
                client.push(batch)
            done = upto
            time.sleep(EVERY_S)
        for client in clients:
            client.close()
    return done


if __name__ == "__main__":
    controller, first, number, rate, seconds, report, go = sys.argv[1:]
    names = [f"reports/s{each}" for each in range(int(first), int(first) + int(number))]
    done = push(controller, names, int(rate), float(seconds), Path(go))
    Path(report).write_text(json.dumps({"streams": names, "rows": done}))
