"""Addresses of gates and controllers, as people write them and as Flight takes them."""

from dataclasses import dataclass
from typing import Final

from penstock.ingest.wire import GATE_PORT, parse_address

__all__ = ["CONTROLLER_PORT", "Address"]

CONTROLLER_PORT: Final = 7300


@dataclass(frozen=True, slots=True)
class Address:
    """Where a gate or a controller listens.

    >>> str(Address.parse("[::1]")), Address.parse("gate-3:7401").location(tls=True)
    ('[::1]:7400', 'grpc+tls://gate-3:7401')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int = GATE_PORT) -> "Address":
        """Read host, host:port or [IPv6]:port; `port` stands where none is given."""
        return cls(*parse_address(text.strip(), port))

    def location(self, *, tls: bool) -> str:
        """The address as Flight takes it."""
        return f"{'grpc+tls' if tls else 'grpc'}://{self}"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
