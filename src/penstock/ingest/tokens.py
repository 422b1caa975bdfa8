"""Bearer tokens: kept as hashes in a file, compared in constant time, never named in a log or an error."""

import hmac
import secrets
import threading
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from penstock.errors import BadToken, NotAllowed
from penstock.ingest.rights import Rights

__all__ = ["TokenFile", "hash_of", "new_token"]

_KEYS = {"name", "sha256", "push", "read", "administer", "expires"}


@dataclass(frozen=True, slots=True)
class Known:
    """One line of the file: a hash, what it allows and until when."""

    name: str
    hash: str
    rights: Rights
    expires: datetime | None


def new_token() -> str:
    """A fresh token: 256 bits at random, so that a plain hash of it tells nothing.

    >>> len(new_token()), new_token() == new_token()
    (47, False)
    """
    return f"pst_{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """The hash under which a token is kept."""
    return sha256(token.encode()).hexdigest()


class TokenFile:
    """The tokens of a gate; the file is read anew when it has changed, so tokens come and go while it runs.

    A file that has become unreadable keeps no old token alive: nobody is let in until it is right again.
    """

    def __init__(self, path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path, self._now = path, now
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._known: list[Known] = []
        self._refresh()

    def rights(self, token: str | None) -> Rights:
        """What a token allows; each known hash is compared, so the time tells nothing."""
        if not token:
            raise NotAllowed("no token; send the header 'authorization: Bearer ...'")
        try:
            known = self._refresh()
        except BadToken:
            raise NotAllowed("the gate cannot read its tokens; tell whoever runs it") from None
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
        return found.rights

    def _refresh(self) -> list[Known]:
        with self._lock:
            try:
                state = self._path.stat()
                mark = (state.st_mtime_ns, state.st_size)
                if mark != self._seen:
                    self._known = [_known(each) for each in tomllib.loads(self._path.read_text())["token"]]
                    self._seen = mark
            except (OSError, ValueError, KeyError, TypeError) as error:
                self._known, self._seen = [], None
                raise BadToken(
                    f"the token file {self._path} cannot be read ({type(error).__name__}); write [[token]] "
                    "entries as `penstock token` prints them"
                ) from None
            return self._known


def _known(entry: dict[str, Any]) -> Known:
    name, digest, expires = entry.get("name"), entry.get("sha256"), entry.get("expires")
    if unknown := set(entry) - _KEYS:
        raise BadToken(f"token {name!r}: no key {min(unknown)!r}; the keys are {', '.join(sorted(_KEYS))}")
    if not isinstance(name, str) or not isinstance(digest, str) or len(digest) != 64:
        raise BadToken(f"token {name!r}: give a name and the sha256 as `penstock token` prints it")
    if expires is not None and not isinstance(expires, datetime):
        raise BadToken(f"token {name!r}: expires is {expires!r}; give a time such as 2030-01-01T00:00:00Z")
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    rights = Rights(
        _patterns(entry, "push"), _patterns(entry, "read"), entry.get("administer", False) is True
    )
    return Known(name, digest.lower(), rights, expires)


def _patterns(entry: dict[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadToken(f"token {entry.get('name')!r}: {key} is {value!r}; give a list such as ['reports/*']")
    return tuple(value)
