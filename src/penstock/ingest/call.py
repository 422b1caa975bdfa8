"""One open push: who speaks, with which schema and rights, for which streams."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.ingest.answers import Answers

__all__ = ["Call"]


@dataclass(slots=True, eq=False)
class Call:
    """A client's open push; `may` tells whether it has a right on a stream."""

    peer: str
    schema: pa.Schema
    answers: Answers
    may_push: Callable[[str], bool]
    streams: set[str] = field(default_factory=set)
    waiting: int = 0
    """Batches taken and not yet answered."""
