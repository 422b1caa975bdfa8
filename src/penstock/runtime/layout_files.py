"""What layouts name, since it is too large for a plan: routers and sketches, written before the plan."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.durable import Purpose
from penstock.errors import DamagedCheckpoint
from penstock.routing import HashPair, router_name
from penstock.state.storage import Location

__all__ = ["LayoutFiles"]

# In memory: for every stage what the last epoch and this one name.
_MOST_HELD = 64

T = TypeVar("T")


@dataclass
class LayoutFiles:
    """Stores values in files named by their content, and finds them by name."""

    folder: Location
    _held: dict[str, Any] = field(default_factory=dict)

    def store(self, value: Any) -> str:
        """Make a value durable and return its name; nobody may change the value afterwards."""
        data = value.to_bytes()
        name = router_name(data)
        if not self.folder.has(name):
            self.folder.write(name, data, Purpose.ROUTER)
        self._hold(name, value)
        return name

    def find(self, name: str, kind: type[T]) -> T:
        """The value with this name."""
        if name not in self._held:
            self._hold(name, kind.from_bytes(self._read(name)))  # type: ignore[attr-defined]
        found = self._held[name]
        assert isinstance(found, kind)
        return found

    def router(self, name: str) -> HashPair:
        """The router with this name."""
        return self.find(name, HashPair)

    def _read(self, name: str) -> bytes:
        data = self.folder.read(name) if self.folder.has(name) else b""
        if router_name(data) != name:
            raise DamagedCheckpoint(
                f"router {self.folder.uri}/{name} is missing or altered ({len(data)} bytes); restore it "
                "from a backup, or start with a new checkpoint"
            )
        return data

    def _hold(self, name: str, value: Any) -> None:
        self._held[name] = value
        while len(self._held) > _MOST_HELD:
            del self._held[next(iter(self._held))]
