"""Calls to gates and controllers: actions and answers as JSON, errors in the words of the house."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.flight as fl

from penstock.errors import GateAway, IngestError, Refused
from penstock.ingest.access import Access
from penstock.ingest.address import Address
from penstock.ingest.wire import as_json

__all__ = ["CALL_SECONDS", "Line", "told"]

CALL_SECONDS: Final = 10.0
# A channel of its own each time: gRPC would make a new one wait out the back-off of one that failed before.
OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
# What a server says on purpose; all else is how a broken call shows, in more ways than are written down.
REFUSING: Final = (
    fl.FlightUnauthenticatedError,
    fl.FlightUnauthorizedError,
    fl.FlightServerError,
    NotImplementedError,
)


class Line:
    """An open way to one gate or controller; close it after use."""

    def __init__(self, address: str | Address, access: Access | None = None) -> None:
        self.address = Address.parse(address) if isinstance(address, str) else address
        self.access = access or Access()
        tls = self.access.tls
        self.flight = fl.FlightClient(
            self.address.location(tls=tls is not None),
            generic_options=list(OPTIONS),
            **self.access.arguments,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the channel."""
        self.flight.close()

    def act(self, name: str, body: Mapping[str, Any] | None = None, timeout: float = CALL_SECONDS) -> Any:
        """Call an action; its first result, or None."""
        action = fl.Action(name, as_json(body or {}))
        try:
            for result in self.flight.do_action(action, self.access.options(timeout)):
                return json.loads(result.body.to_pybytes())
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise told(error, self.address) from None
        return None

    def offers(self, name: str, timeout: float = CALL_SECONDS) -> bool:
        """Whether an action of this name is there."""
        try:
            return any(each.type == name for each in self.flight.list_actions(self.access.options(timeout)))
        except NotImplementedError:
            return False
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise told(error, self.address) from None

    def table(self, ticket: Mapping[str, Any], timeout: float = CALL_SECONDS) -> pa.Table:
        """All that a ticket stands for."""
        try:
            wanted = fl.Ticket(as_json(ticket))
            return self.flight.do_get(wanted, self.access.options(timeout)).read_all()
        except (fl.FlightError, pa.ArrowException, OSError) as error:
            raise told(error, self.address) from None


def told(error: Exception, address: Address) -> IngestError:
    """An error of Flight as one of the house: GateAway if another try may do better, else Refused."""
    # gRPC adds its own context below the message, and Flight a frame above it.
    text = re.split(r"\.? ?(?:gRPC client debug context|Client context|Detail):", str(error))[0]
    text = re.sub(r"^Flight \w+(?: \w+)* error, with message: ", "", text).strip() or type(error).__name__
    if isinstance(error, REFUSING):
        return Refused(f"{address} refused: {text}")
    return GateAway(f"no answer from {address}: {text}; see that it runs and that the address is right")
