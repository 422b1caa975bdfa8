"""What gates hold, read back over the wire as a reader does: each sequence number once, with the same row."""

import json

import pyarrow.flight as fl

from penstock.ingest.wire import Endpoint
from penstock.ingest.wire.protocol import BatchLabel, IndexTicket, ReadTicket


def held(gates, inlet):
    """For every stream its values of n by sequence number; gates must agree where both have a row."""
    union = {}
    for gate in gates:
        with Endpoint(str(gate)) as endpoint:
            index = endpoint.index(IndexTicket(inlet)).to_pylist()
            ranges = [(row["stream"], row["low"], row["high"]) for row in index if row["low"] < row["high"]]
            if not ranges:
                continue
            for chunk in endpoint.flight.do_get(fl.Ticket(ReadTicket(inlet, tuple(ranges)).encode())):
                ((stream, first, _),) = BatchLabel.decode(chunk.app_metadata.to_pybytes()).runs
                rows = union.setdefault(stream, {})
                for sequence, value in enumerate(chunk.data["n"].to_pylist(), start=first):
                    assert rows.setdefault(sequence, value) == value, (gate, stream, sequence)
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
    with Endpoint(str(gate)) as endpoint:
        return json.loads(endpoint.act(name, json.dumps(body).encode()))
