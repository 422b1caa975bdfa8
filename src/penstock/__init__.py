"""Penstock: elastic, skew-proof stream processing on Apache Spark.

Names are imported when they are first used: a client, a gate or a worker does not wait for Spark, nor does it
load a parser of SQL.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock import errors

if TYPE_CHECKING:
    from penstock.aggregates import *  # noqa: F403 -- the registry decides on the names
    from penstock.connect import (
        Sink,
        Source,
        console,
        dataframe,
        delivered,
        delta,
        each,
        files,
        gates,
        memory,
        parquet,
        rows,
    )
    from penstock.ingest import TLS, AsyncClient, Client, Connection, Directory
    from penstock.operators import WindowInfo
    from penstock.operators.process import NO_TIMER, Block, Outcome, Processor, Visit
    from penstock.operators.windows import cumulate, window
    from penstock.query.qos import QoS
    from penstock.query.query import Query, outputs
    from penstock.query.relation import Relation
    from penstock.query.sql import sql
    from penstock.query.stream import Stream, stream
    from penstock.runtime import (
        ChannelLoad,
        Decision,
        EpochProgress,
        Limits,
        Observation,
        Rescale,
        Rescaled,
        Resources,
        ResultBatch,
        ResultLatency,
        Ruling,
        Run,
        StageChannels,
        StageProgress,
        TrackedKey,
    )

__version__ = "0.1.0"

__all__ = [
    "NO_TIMER",
    "TLS",
    "AsyncClient",
    "Block",
    "ChannelLoad",
    "Client",
    "Connection",
    "Decision",
    "Directory",
    "EpochProgress",
    "Limits",
    "Observation",
    "Outcome",
    "Processor",
    "QoS",
    "Query",
    "Relation",
    "Rescale",
    "Rescaled",
    "Resources",
    "ResultBatch",
    "ResultLatency",
    "Ruling",
    "Run",
    "Sink",
    "Source",
    "StageChannels",
    "StageProgress",
    "Stream",
    "TrackedKey",
    "Visit",
    "WindowInfo",
    "__version__",
    "console",
    "cumulate",
    "dataframe",
    "delivered",
    "delta",
    "each",
    "errors",
    "files",
    "gates",
    "memory",
    "outputs",
    "parquet",
    "rows",
    "sql",
    "stream",
    "window",
]

_ROOMS = {
    "penstock.connect": "Sink Source console dataframe delivered delta each files gates memory parquet rows",
    "penstock.ingest": "TLS AsyncClient Client Connection Directory",
    "penstock.operators": "WindowInfo",
    "penstock.operators.process": "NO_TIMER Block Outcome Processor Visit",
    "penstock.operators.windows": "cumulate window",
    "penstock.query": "QoS Query Relation Stream outputs sql stream",
    "penstock.runtime": (
        "ChannelLoad Decision EpochProgress Limits Observation Rescale Rescaled Resources "
        "ResultBatch ResultLatency Ruling Run StageChannels StageProgress TrackedKey"
    ),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}
_REGISTRY = "penstock.aggregates"

if not TYPE_CHECKING:
    # Type checkers see the imports above; with this function they would take any name to exist.
    def __getattr__(name: str) -> Any:
        """Import the room of a public name, and keep the name here for the next time."""
        if name.startswith("__"):
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        if name not in _HOMES and find_spec(f"penstock.{name}") is not None:
            return import_module(f"penstock.{name}")
        room = import_module(_HOMES.get(name, _REGISTRY))
        if name not in room.__all__:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        value = getattr(room, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What is there already, and the public names that are not imported yet."""
    return sorted({*globals(), *__all__, *import_module(_REGISTRY).__all__})
