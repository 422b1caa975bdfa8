"""Addresses of gates and controllers: host:port, with the ports that both have by default."""

from dataclasses import dataclass
from typing import Final

from penstock.errors import BadAddress

__all__ = ["CONTROLLER_PORT", "GATE_PORT", "Address"]

GATE_PORT: Final = 7400
CONTROLLER_PORT: Final = 7300


@dataclass(frozen=True, slots=True)
class Address:
    """Where a gate or a controller listens.

    >>> Address.parse("gate-3.example:7401")
    Address(host='gate-3.example', port=7401)
    >>> str(Address.parse("[::1]")), Address.parse("127.0.0.1").location(tls=True)
    ('[::1]:7400', 'grpc+tls://127.0.0.1:7400')
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int = GATE_PORT) -> "Address":
        """Read host, host:port or [IPv6]:port; `port` stands where none is given."""
        plain = text.strip()
        head, colon, tail = plain.rpartition(":")
        if plain.endswith("]") or not colon:
            head, tail = plain, str(port)
        if not head or not tail.isdigit() or int(tail) > 65_535 or "/" in head:
            raise BadAddress(f"cannot read the address {text!r}; write host:port, such as 127.0.0.1:{port}")
        return cls(head, int(tail))

    def location(self, *, tls: bool) -> str:
        """The address as Flight takes it."""
        return f"{'grpc+tls' if tls else 'grpc'}://{self}"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
