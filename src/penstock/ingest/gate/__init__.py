"""The gate: where streams enter and become durable."""

from penstock.ingest.gate.gate import Gate
from penstock.ingest.gate.process import Heartbeat, run_gate
from penstock.ingest.gate.state import GateState

__all__ = ["Gate", "GateState", "Heartbeat", "run_gate"]
