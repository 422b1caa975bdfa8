"""How a client proves who it is: certificates and a token; no text ever shows a secret."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.flight as fl

from penstock.errors import IngestError

__all__ = ["TERM_HEADER", "TLS", "TOKEN_VARIABLE", "Access"]

TOKEN_VARIABLE: Final = "PENSTOCK_TOKEN"  # noqa: S105 -- the name of a variable, not a secret


TERM_HEADER: Final = "penstock-term"


@dataclass(frozen=True, slots=True)
class TLS:
    """PEM files: roots to trust (by default the system's); for mutual TLS a certificate and its key."""

    roots: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise IngestError(
                f"TLS has certificate {self.certificate!r} and key {self.key!r}; mutual TLS needs both "
                "files, plain TLS neither"
            )

    def arguments(self) -> dict[str, Any]:
        """The arguments for Flight; the files are read now."""
        given: dict[str, Any] = {}
        if self.roots is not None:
            given["tls_root_certs"] = _read(self.roots)
        if self.certificate is not None and self.key is not None:
            given["cert_chain"] = _read(self.certificate).decode()
            given["private_key"] = _read(self.key).decode()
        return given


@dataclass(frozen=True, slots=True)
class Access:
    """TLS and token of one client; `Access()` takes the token of PENSTOCK_TOKEN, if there is one.

    >>> Access(token="sesame")
    Access(tls=None, term=None)
    """

    tls: TLS | None = None
    token: str | None = field(default=None, repr=False)
    term: str | None = None
    """That of the controller which gives orders: gates refuse those of an earlier one."""
    arguments: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        token = self.token if self.token is not None else os.environ.get(TOKEN_VARIABLE)
        if token is not None and (not token.isascii() or not token.isprintable() or " " in token):
            raise IngestError(
                "the token has characters that no token has; give it as `penstock token` printed it"
            )
        object.__setattr__(self, "token", token or None)
        object.__setattr__(self, "arguments", {} if self.tls is None else self.tls.arguments())

    def options(self, timeout: float | None = None) -> fl.FlightCallOptions:
        """The options of one call."""
        headers = [] if self.token is None else [(b"authorization", b"Bearer " + self.token.encode())]
        if self.term is not None:
            headers.append((TERM_HEADER.encode(), self.term.encode()))
        return fl.FlightCallOptions(timeout=timeout, headers=headers)


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise IngestError(f"cannot read {path}: {error.strerror}; give a file in PEM form") from error
