"""The routers of a checkpoint, and sketches of costs: files named by their content, written before a plan."""

from dataclasses import dataclass, field
from typing import Any

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.routing import HashPair, router_name
from penstock.sketches import ValueCosts
from penstock.state.storage import Location

__all__ = ["Routers"]

# Routers in memory: for every stage those of the last epoch and of this one, and the target.
_MOST_HELD = 64


@dataclass
class Routers:
    """Stores routers and finds them by name."""

    folder: Location
    _held: dict[str, HashPair] = field(default_factory=dict)
    _costs: dict[str, ValueCosts] = field(default_factory=dict)

    def store(self, router: HashPair) -> str:
        """Make a router durable and return its name."""
        name = self._written(router.to_bytes())
        self._hold(name, router)
        return name

    def find(self, name: str) -> HashPair:
        """The router with this name."""
        if name not in self._held:
            self._hold(name, HashPair.from_bytes(self._read(name)))
        return self._held[name]

    def store_costs(self, costs: ValueCosts) -> str:
        """Make a sketch of costs durable as it is now, and return its name."""
        data = costs.to_bytes()
        name = self._written(data)
        # A copy: the sketch that it was made from learns on.
        self._costs[name] = ValueCosts.from_bytes(data)
        _bound(self._costs)
        return name

    def find_costs(self, name: str) -> ValueCosts:
        """The sketch of costs with this name."""
        if name not in self._costs:
            self._costs[name] = ValueCosts.from_bytes(self._read(name))
            _bound(self._costs)
        return self._costs[name]

    def _written(self, data: bytes) -> str:
        name = router_name(data)
        if not self.folder.has(name):
            self.folder.write(name, data, Purpose.ROUTER)
        return name

    def _read(self, name: str) -> bytes:
        data = self.folder.read(name) if self.folder.has(name) else b""
        if router_name(data) != name:
            raise DamagedCheckpoint(
                f"router {self.folder.uri}/{name} is missing or altered ({len(data)} bytes); restore it "
                "from a backup, or start with a new checkpoint"
            )
        return data

    def _hold(self, name: str, router: HashPair) -> None:
        self._held[name] = router
        _bound(self._held)


def _bound(held: dict[Any, Any]) -> None:
    while len(held) > _MOST_HELD:
        del held[next(iter(held))]
