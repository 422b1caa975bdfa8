"""What goes over the wire: the protocol, Flight calls and errors, and the metadata of streams."""

from penstock.ingest.wire.codec import Message, check_stream
from penstock.ingest.wire.flight import CONTROLLER_PORT, GATE_PORT, Address, Endpoint
from penstock.ingest.wire.metadata import Metadata
from penstock.ingest.wire.protocol import inlet_of

__all__ = [
    "CONTROLLER_PORT",
    "GATE_PORT",
    "Address",
    "Endpoint",
    "Message",
    "Metadata",
    "check_stream",
    "inlet_of",
]
