"""Who may reach a gate, and how: open on loopback, TLS and tokens elsewhere unless explicitly waived."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from pyarrow import flight

from penstock.errors import BadGate, NotAllowed
from penstock.ingest.rights import ALL, Rights
from penstock.ingest.tokens import TokenFile

__all__ = ["OPEN", "Security"]


@dataclass(frozen=True, slots=True)
class Security:
    """Certificates and tokens of a server; `client_roots` makes TLS mutual.

    >>> Security().check("127.0.0.1")
    >>> Security().check("0.0.0.0")
    Traceback (most recent call last):
        ...
    penstock.errors.BadGate: address 0.0.0.0 is open to others without TLS and without tokens or client \
certificates; give them, or waive them with --insecure
    """

    certificate: Path | None = None
    key: Path | None = None
    client_roots: Path | None = None
    tokens: Path | None = None
    insecure: bool = False
    _file: TokenFile | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise BadGate("TLS needs both a certificate and its key; give --tls-certificate and --tls-key")
        if self.client_roots is not None and self.certificate is None:
            raise BadGate("client certificates need TLS; give --tls-certificate and --tls-key too")
        object.__setattr__(self, "_file", TokenFile(self.tokens) if self.tokens else None)

    def check(self, host: str) -> None:
        """Refuse an address that others can reach without being known."""
        known = self.tokens or self.client_roots
        lacking = [
            *([] if self.certificate else ["without TLS"]),
            *([] if known else ["without tokens or client certificates"]),
        ]
        if lacking and not self.insecure and not is_loopback(host):
            raise BadGate(
                f"address {host} is open to others {' and '.join(lacking)}; give them, or waive them "
                "with --insecure"
            )

    def server_options(self) -> dict[str, Any]:
        """What a Flight server is started with."""
        options: dict[str, Any] = {}
        if self._file:
            options["middleware"] = {"token": _Tokens(self._file)}
        if self.certificate and self.key:
            options["tls_certificates"] = [(_read(self.certificate), _read(self.key))]
        if self.client_roots:
            options |= {"verify_client": True, "root_certificates": _read(self.client_roots)}
        return options

    def rights(self, context: Any) -> Rights:
        """What the caller may do."""
        if self._file is None:
            return ALL
        rights: Rights = context.get_middleware("token").rights
        return rights


class _Bearer(flight.ServerMiddleware):  # type: ignore[misc] # Flight is untyped
    def __init__(self, rights: Rights) -> None:
        self.rights = rights


class _Tokens(flight.ServerMiddlewareFactory):  # type: ignore[misc] # Flight is untyped
    def __init__(self, file: TokenFile) -> None:
        self._file = file

    def start_call(self, _: Any, headers: dict[str, list[Any]]) -> _Bearer:
        given = [
            value for name, values in headers.items() if name.lower() == "authorization" for value in values
        ]
        kind, _, token = str(given[0] if len(given) == 1 else "").partition(" ")
        try:
            return _Bearer(self._file.rights(token.strip() if kind.lower() == "bearer" else None))
        except NotAllowed as error:
            raise flight.FlightUnauthenticatedError(str(error)) from None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("gate-1")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadGate(f"{path} cannot be read ({error.strerror}); give a PEM file") from None


OPEN: Final = Security()
