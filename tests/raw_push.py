"""A client of the bare protocol: says exactly what a test tells it to, and hears every answer."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import flight

SCHEMA = pa.schema([("time", pa.timestamp("us")), ("number", pa.int64()), ("text", pa.string())])
COMMAND = flight.FlightDescriptor.for_command(b'{"op":"push","protocol":1}')


def rows(first, count):
    """Rows whose content follows from their sequence, so that what is read back can be checked."""
    numbers = np.arange(first, first + count)
    text = pa.array([f"row {each}" for each in numbers.tolist()], pa.string())
    return pa.record_batch([pa.array(numbers, pa.timestamp("us")), pa.array(numbers), text], schema=SCHEMA)


class RawPush:
    """One open push."""

    def __init__(self, address, schema=SCHEMA, scheme="grpc", options=None, **connect):
        self.client = flight.connect(f"{scheme}://{address}", **connect)
        self.writer, self._reader = self.client.do_put(COMMAND, schema, options)
        self.heard = queue.Queue()
        self.acknowledged = {}
        self.error = None
        self.ended = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, stream, sequence, batch, **more):
        message = {"stream": stream, "sequence": sequence, **more}
        self.writer.write_with_metadata(batch, json.dumps(message).encode())

    def answer(self, timeout=120):
        """The next answer that is not an acknowledgement."""
        return self.heard.get(timeout=timeout)

    def wait_for(self, stream, upto, timeout=120):
        """Wait until all rows below a number are acknowledged."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.acknowledged.get(stream, -1) >= upto, timeout)

    def finish(self):
        """Say that no more comes, and hear the rest."""
        self.writer.done_writing()
        self._thread.join(120)

    def close(self):
        try:
            self.finish()  # Flight's close waits for a reader, so all has to be heard before
            self.writer.close()
        except (flight.FlightError, pa.ArrowException) as error:
            self.error = error
        self.client.close()

    _changed = threading.Condition()

    def _listen(self):
        try:
            while (message := self._reader.read()) is not None:
                said = json.loads(message.to_pybytes())
                for each in said.get("answers", [said]):
                    self._hear(each)
        except (flight.FlightError, pa.ArrowException) as error:
            self.error = error
        self.ended = True

    def _hear(self, answer):
        with self._changed:
            if "acknowledged" in answer:
                known = self.acknowledged.get(answer["stream"], 0)
                self.acknowledged[answer["stream"]] = max(known, answer["acknowledged"])
            self._changed.notify_all()
        if answer.keys() - {"stream", "acknowledged", "credit"}:
            self.heard.put(answer)


def ask(address, action, options=None, scheme="grpc", connect=None, **body):
    with flight.connect(f"{scheme}://{address}", **(connect or {})) as client:
        (result,) = client.do_action(flight.Action(action, json.dumps(body).encode()), options)
        return json.loads(result.body.to_pybytes())


def get(address, options=None, **ticket):
    with flight.connect(f"grpc://{address}") as client:
        return client.do_get(flight.Ticket(json.dumps(ticket).encode()), options).read_all()


def ranges(address, inlet="reports"):
    """What the gate holds: {stream: [(low, high), ...]}."""
    held = {}
    for line in get(address, op="index", inlet=inlet).to_pylist():
        held.setdefault(line["stream"], []).append((line["low"], line["high"]))
    return held


def numbers(address, stream, low, high, inlet="reports"):
    """The numbers in the rows [low, high) of a stream, as they are read."""
    table = get(address, op="read", inlet=inlet, ranges=[[stream, low, high]])
    assert table.column("text").to_pylist() == [f"row {each}" for each in table.column("number").to_pylist()]
    return table.column("number").to_pylist()


class GateProcess:
    """`penstock gate` as a process."""

    def __init__(self, folder, *options, address="127.0.0.1:0"):
        command = [sys.executable, "-c", "from penstock.cli import main; main()", "gate"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [*command, "--address", address, "--folder", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        line = self.process.stdout.readline()
        assert line.startswith("gate ready at "), line + self.process.stderr.read()
        self.address = line.split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def files(folder):
    return sorted(Path(folder, "log").glob("*.log"))
