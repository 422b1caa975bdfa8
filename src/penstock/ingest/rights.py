"""What a token allows: to push to streams, to read streams, to administer the gate."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from penstock.ingest.wire import inlet_of

__all__ = ["ALL", "NONE", "Rights"]


@dataclass(frozen=True, slots=True)
class Rights:
    """Patterns of stream ids, as shells have them; who may administer may also look.

    >>> rights = Rights(push=("reports/vehicle-*",), read=("reports/*",))
    >>> rights.may_push("reports/vehicle-17"), rights.may_push("reports/bus-1")
    (True, False)
    >>> rights.may_read_some("reports"), rights.may_read_some("alarms")
    (True, False)
    """

    push: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    administer: bool = False

    def may_push(self, stream: str) -> bool:
        """Whether rows of this stream are taken."""
        return any(fnmatchcase(stream, each) for each in self.push)

    def may_read(self, stream: str) -> bool:
        """Whether rows of this stream are given."""
        return any(fnmatchcase(stream, each) for each in self.read)

    def may_read_some(self, inlet: str) -> bool:
        """Whether any stream of an inlet may be read."""
        return any(fnmatchcase(inlet, inlet_of(each)) for each in self.read)


ALL: Final = Rights(("*",), ("*",), administer=True)
NONE: Final = Rights()
