"""A Flight server that answers every batch and does nothing else: what a gate is measured against.

It neither checks nor stores. `python -m penstock_lab.bench.bare_flight PORT` runs it.
"""

import json
import sys
from typing import Any

from pyarrow import flight

__all__ = ["BareServer"]


class BareServer(flight.FlightServerBase):  # type: ignore[misc]  # Flight is untyped
    """Acknowledges every batch as soon as it has been received."""

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Take batches until the client is done."""
        del context, descriptor
        for chunk in reader:
            said = json.loads(chunk.app_metadata.to_pybytes())
            upto = said["sequence"] + chunk.data.num_rows
            writer.write(json.dumps({"stream": said["stream"], "acknowledged": upto}).encode())


if __name__ == "__main__":
    BareServer(f"grpc://127.0.0.1:{sys.argv[1]}").serve()
