"""The routers of a checkpoint: files named by their content, each written before a plan names it.

Their native Spark forms are cached as well: the arrays go to the JVM once, not in every epoch.
"""

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.routing import HashPair, router_name
from penstock.runtime.spark.routes import route_column
from penstock.state.storage import Location

__all__ = ["Routers"]

# Routers in memory: for every stage those of the last epoch and of this one, and the target.
_MOST_HELD = 64


@dataclass
class Routers:
    """Stores routers and finds them by name."""

    folder: Location
    _held: dict[str, HashPair] = field(default_factory=dict)
    _columns: dict[tuple[str, str], Column] = field(default_factory=dict)

    def store(self, router: HashPair) -> str:
        """Make a router durable and return its name."""
        data = router.to_bytes()
        name = router_name(data)
        if not self.folder.has(name):
            self.folder.write(name, data, Purpose.ROUTER)
        self._hold(name, router)
        return name

    def find(self, name: str) -> HashPair:
        """The router with this name."""
        if name not in self._held:
            data = self.folder.read(name) if self.folder.has(name) else b""
            if router_name(data) != name:
                raise DamagedCheckpoint(
                    f"router {self.folder.uri}/{name} is missing or altered ({len(data)} bytes); restore it "
                    "from a backup, or start with a new checkpoint"
                )
            self._hold(name, HashPair.from_bytes(data))
        return self._held[name]

    def column(self, name: str, hashed: str) -> Column:
        """The channel as a native expression over a hash given as SQL."""
        if (name, hashed) not in self._columns:
            self._columns[name, hashed] = route_column(F.expr(hashed), self.find(name).arrays)
            _bound(self._columns)
        return self._columns[name, hashed]

    def _hold(self, name: str, router: HashPair) -> None:
        self._held[name] = router
        _bound(self._held)


def _bound(held: dict[Any, Any]) -> None:
    while len(held) > _MOST_HELD:
        del held[next(iter(held))]
