"""Who may do what at a gate or controller: rights, tokens, and the security of a server.

Tokens are kept as hashes in a file, compared in constant time, and never named in a log or an error. A server
is open on loopback; elsewhere it needs TLS, and tokens or client certificates, unless they are waived.
"""

import hmac
import secrets
import threading
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from pyarrow import flight

from penstock.errors import BadGate, BadToken, NotAllowed
from penstock.ingest.wire.protocol import inlet_of

__all__ = ["ALL", "CERTIFIED", "NONE", "OPEN", "Rights", "Security", "TokenFile", "hash_of", "new_token"]


@dataclass(frozen=True, slots=True)
class Rights:
    """Patterns of stream ids, as in a shell; the right to administer includes looking.

    >>> rights = Rights(push=("reports/vehicle-*",), read=("reports/*",))
    >>> rights.may_push("reports/vehicle-17"), rights.may_push("reports/bus-1")
    (True, False)
    >>> rights.may_read_some("reports"), rights.may_read_some("alarms")
    (True, False)
    """

    push: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    administer: bool = False
    commit: tuple[str, ...] = ()
    """Streams of which the holder may say that their rows were read: gates delete these."""

    def may_push(self, stream: str) -> bool:
        """Whether rows of this stream are taken."""
        return any(fnmatchcase(stream, each) for each in self.push)

    def may_read(self, stream: str) -> bool:
        """Whether rows of this stream are given."""
        return any(fnmatchcase(stream, each) for each in self.read)

    def may_read_some(self, inlet: str) -> bool:
        """Whether any stream of an inlet may be read."""
        return any(fnmatchcase(inlet, inlet_of(each)) for each in self.read)

    def may_commit(self, stream: str) -> bool:
        """Whether rows of this stream may be given up as read."""
        return any(fnmatchcase(stream, each) for each in self.commit)

    def may_commit_some(self, inlet: str) -> bool:
        """Whether a reader of this inlet may register, for which gates keep rows."""
        return any(fnmatchcase(inlet, inlet_of(each)) for each in self.commit)


ALL: Final = Rights(("*",), ("*",), administer=True, commit=("*",))
NONE: Final = Rights()
CERTIFIED: Final = Rights(("*",), ("*",))
"""What a client certificate allows that no file names: rows in and out, but nothing is deleted or changed."""


_KEYS = {"name", "sha256", "push", "read", "commit", "administer", "expires", "tenant"}
_CERTIFICATE_KEYS = {"name", "push", "read", "commit", "administer", "tenant"}
_TENANT_KEYS = {"name", "share"}


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One line of the file: a hash, what it allows and until when."""

    name: str
    hash: str
    rights: Rights
    expires: datetime | None
    tenant: str | None = None
    """Whose limits and share it counts to; without one, it has those of one tenant for itself."""

    @property
    def caller(self) -> str:
        """Whose limits count."""
        return self.tenant or self.hash


def new_token() -> str:
    """A fresh token: 256 bits at random, so that a plain hash of it reveals nothing.

    >>> len(new_token()), new_token() == new_token()
    (47, False)
    """
    return f"pst_{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """The hash under which a token is kept."""
    return sha256(token.encode()).hexdigest()


class TokenFile:
    """The tokens of a gate; the file is read again when it changes, so tokens can change while the gate runs.

    While the file cannot be read, nobody is let in: old tokens do not outlive it.
    """

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path, self._now = path, now
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._known: list[TokenEntry] = []
        self._certificates: dict[str, Rights] = {}
        self._tenants: dict[str, str] = {}
        self._shares: dict[str, float] = {}
        self._refresh()

    def tenant_of(self, certificate: str) -> str:
        """Whose limits count for a client certificate, by the name in it."""
        return self._tenants.get(certificate, certificate)

    def share(self, tenant: str | None) -> float:
        """The share of a tenant, as a part of the shares of all tenants that are there."""
        return self._shares.get(tenant or "", 1.0)

    @property
    def certificates(self) -> dict[str, Rights]:
        """The rights of client certificates, by the name in them; none while the file cannot be read."""
        try:
            self._refresh()
        except BadToken:
            return {}
        return self._certificates

    def rights(self, token: str | None) -> Rights:
        """What a token allows."""
        return self.entry(token).rights

    def entry(self, token: str | None) -> TokenEntry:
        """The entry of a token; every hash is compared, so the time reveals nothing."""
        if not token:
            raise NotAllowed("no token; send the header 'authorization: Bearer ...'")
        try:
            known = self._refresh()
        except BadToken:
            raise NotAllowed("the gate cannot read its tokens; tell its operator") from None
        given, found = hash_of(token), None
        for each in known:
            if hmac.compare_digest(each.hash, given):
                found = each
        if found is None:
            raise NotAllowed("this token is not known here; ask for a new one")
        if found.expires is not None and self._now() >= found.expires:
            raise NotAllowed(
                f"the token {found.name!r} expired at {found.expires:%Y-%m-%d %H:%M} UTC; ask for a new one"
            )
        return found

    def _refresh(self) -> list[TokenEntry]:
        with self._lock:
            try:
                state = self._path.stat()
                mark = (state.st_mtime_ns, state.st_size)
                if mark != self._seen:
                    said = _entries(self._path)
                    certificates = dict(_certificate(each) for each in said.get("certificate", []))
                    shares = dict(_share(each) for each in said.get("tenant", []))
                    self._known = [_known(each) for each in said.get("token", [])]
                    self._tenants = {
                        each["name"]: tenant
                        for each in said.get("certificate", [])
                        if (tenant := _tenant(each)) is not None
                    }
                    self._certificates, self._shares, self._seen = certificates, shares, mark
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                self._known, self._certificates, self._seen = [], {}, None
                raise BadToken(
                    f"the token file {self._path} cannot be read ({type(error).__name__}); write [[token]] "
                    "entries as `penstock token` prints them"
                ) from None
            return self._known


def _entries(path: Path) -> dict[str, Any]:
    said = tomllib.loads(path.read_text())
    if not said.keys() & {"token", "certificate"}:
        raise KeyError("token")
    return said


def _known(entry: dict[str, Any]) -> TokenEntry:
    name, digest, expires = entry.get("name"), entry.get("sha256"), entry.get("expires")
    if unknown := set(entry) - _KEYS:
        raise BadToken(f"token {name!r}: no key {min(unknown)!r}; the keys are {', '.join(sorted(_KEYS))}")
    if not isinstance(name, str) or not isinstance(digest, str) or len(digest) != 64:
        raise BadToken(f"token {name!r}: give a name and the sha256 as `penstock token` prints it")
    if expires is not None and not isinstance(expires, datetime):
        raise BadToken(f"token {name!r}: expires is {expires!r}; give a time such as 2030-01-01T00:00:00Z")
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    return TokenEntry(name, digest.lower(), _rights(entry), expires, _tenant(entry))


def _tenant(entry: dict[str, Any]) -> str | None:
    tenant: Any = entry.get("tenant")
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise BadToken(f"token {entry.get('name')!r}: tenant is {tenant!r}; give a name such as 'acme'")
    return tenant


def _share(entry: dict[str, Any]) -> tuple[str, float]:
    match entry:
        case {"name": str(name), "share": int() | float() as share} if set(entry) == _TENANT_KEYS:
            if 0 < share < float("inf"):
                return name, float(share)
    raise BadToken(f"tenant {entry!r}; give a name and a share above 0, such as name = 'acme', share = 2")


def _certificate(entry: dict[str, Any]) -> tuple[str, Rights]:
    name = entry.get("name")
    if unknown := set(entry) - _CERTIFICATE_KEYS:
        keys = ", ".join(sorted(_CERTIFICATE_KEYS))
        raise BadToken(f"certificate {name!r}: no key {min(unknown)!r}; the keys are {keys}")
    if not isinstance(name, str) or not name:
        raise BadToken(f"certificate {name!r}: give the name that is in it, such as 'car-17'")
    return name, _rights(entry)


def _rights(entry: dict[str, Any]) -> Rights:
    return Rights(
        _patterns(entry, "push"),
        _patterns(entry, "read"),
        entry.get("administer", False) is True,
        _patterns(entry, "commit"),
    )


def _patterns(entry: dict[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadToken(f"token {entry.get('name')!r}: {key} is {value!r}; give a list such as ['reports/*']")
    return tuple(value)


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
        """Refuse an address that other machines can reach without TLS and identification."""
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
            options["middleware"] = {"token": _Tokens(self._file, certificates=bool(self.client_roots))}
        if self.certificate and self.key:
            options["tls_certificates"] = [(_read(self.certificate), _read(self.key))]
        if self.client_roots:
            options |= {"verify_client": True, "root_certificates": _read(self.client_roots)}
        return options

    def rights(self, context: Any) -> Rights:
        """What the caller may do: by its token, by its certificate, or everything on an open server."""
        if self._file is None:
            return ALL if self.client_roots is None else CERTIFIED
        rights: Rights | None = context.get_middleware("token").rights
        if rights is None:
            # A name out of a certificate whose key the caller has and whose signer this server trusts.
            rights = self._file.certificates.get(context.peer_identity().decode(errors="replace"))
        if rights is None:
            raise NotAllowed("no token, and no rights for this certificate; send 'authorization: Bearer ...'")
        return rights

    def tenant(self, context: Any) -> str | None:
        """Whose limits a call counts to: its tenant, else its token or certificate; None without tokens."""
        if self._file is None:
            return None
        caller: str = context.get_middleware("token").caller
        return caller or self._file.tenant_of(context.peer_identity().decode(errors="replace"))

    def share(self, tenant: str | None) -> float:
        """The share of a tenant, 1 unless the file of tokens gives it another one."""
        return 1.0 if self._file is None else self._file.share(tenant)


class _Bearer(flight.ServerMiddleware):  # type: ignore[misc] # Flight is untyped
    def __init__(self, rights: Rights | None, caller: str) -> None:
        self.rights, self.caller = rights, caller


class _Tokens(flight.ServerMiddlewareFactory):  # type: ignore[misc] # Flight is untyped
    def __init__(self, file: TokenFile, *, certificates: bool) -> None:
        self._file = file
        self._certificates = certificates

    def start_call(self, _: Any, headers: dict[str, list[Any]]) -> _Bearer:
        given = [
            value for name, values in headers.items() if name.lower() == "authorization" for value in values
        ]
        if not given and self._certificates and self._file.certificates:
            return _Bearer(None, "")
        kind, _, token = str(given[0] if len(given) == 1 else "").partition(" ")
        try:
            found = self._file.entry(token.strip() if kind.lower() == "bearer" else None)
            return _Bearer(found.rights, found.caller)
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
