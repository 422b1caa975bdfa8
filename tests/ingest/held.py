"""What gates hold, read back over the wire as a reader does: each sequence number once, with the same row."""

import json

import pyarrow.flight as fl

from penstock.ingest.dial import Line


def held(gates, inlet):
    """For every stream its values of n by sequence number; gates must agree where both have a row."""
    union = {}
    for gate in gates:
        with Line(str(gate)) as line:
            index = line.table({"op": "index", "inlet": inlet, "since": None}).to_pylist()
            ranges = [[row["stream"], row["low"], row["high"]] for row in index if row["low"] < row["high"]]
            if not ranges:
                continue
            ticket = {"op": "read", "inlet": inlet, "ranges": ranges, "stream_column": None}
            for chunk in line.flight.do_get(fl.Ticket(json.dumps(ticket).encode())):
                said = json.loads(chunk.app_metadata.to_pybytes())
                rows = union.setdefault(said["stream"], {})
                for sequence, value in enumerate(chunk.data["n"].to_pylist(), start=said["sequence"]):
                    assert rows.setdefault(sequence, value) == value, (gate, said["stream"], sequence)
    return union


def whole(gates, inlet):
    """The same as lists; every stream must be there from 0 on without a hole."""
    found = held(gates, inlet)
    for stream, rows in found.items():
        assert set(rows) == set(range(len(rows))), f"{stream} has holes"
    return {stream: [rows[sequence] for sequence in range(len(rows))] for stream, rows in found.items()}


def numbers(first, count):
    return [{"n": n} for n in range(first, first + count)]


def act(gate, name, /, **body):
    with Line(str(gate)) as line:
        return line.act(name, body)
