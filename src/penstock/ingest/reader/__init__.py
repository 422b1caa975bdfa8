"""The reader: the rows of an inlet out of all gates that hold some."""

from penstock.ingest.reader.gate_reader import Gathering, Part
from penstock.ingest.reader.gate_watch import GateWatch
from penstock.ingest.reader.inlet_reader import InletReader
from penstock.ingest.reader.offsets import Offsets

__all__ = ["GateWatch", "Gathering", "InletReader", "Offsets", "Part"]
