"""The open calls of a connection: one to each gate and schema, for as long as streams are there.

Every method is called with the connection's lock held.
"""

import threading
from typing import Final

import pyarrow as pa

from penstock.ingest.access import Access
from penstock.ingest.link import Link, Owner

__all__ = ["IDLE_S", "PATIENCE_S", "Links"]

PATIENCE_S: Final = 15.0
IDLE_S: Final = 10.0


class Links:
    """Calls by gate and schema; a call that is over is replaced by a new one."""

    def __init__(self, access: Access, lock: threading.Lock, owner: Owner) -> None:
        self._access = access
        self._lock = lock
        self._owner = owner
        self._open: dict[tuple[str, str], Link] = {}

    def __len__(self) -> int:
        return len(self._open)

    def to(self, gate: str, schema: pa.Schema) -> Link:
        """The call to a gate with rows of that schema; does not wait for the gate."""
        key = (gate, schema.to_string(show_field_metadata=False))
        link = self._open.get(key)
        if link is None or link.over:
            link = self._open[key] = Link(gate, schema, self._access, self._lock, self._owner)
            link.start()
        return link

    def forget(self, link: Link) -> None:
        """Know a call no more."""
        self._open = {key: known for key, known in self._open.items() if known is not link}

    def silent(self, now: float) -> list[Link]:
        """Calls on which answers have been owed for too long."""
        return [each for each in self._open.values() if each.silent(now) > PATIENCE_S]

    def idle(self, now: float) -> list[Link]:
        """Calls that have had no streams for a while."""
        return [each for each in self._open.values() if not each.lanes and now - each.idle_since > IDLE_S]

    def close(self) -> list[Link]:
        """End all calls; gives them back to be joined without the lock."""
        links = list(self._open.values())
        for link in links:
            link.close()
        self._open = {}
        return links
