"""The one shape of a delivery."""

from collections.abc import Sequence
from typing import Protocol

from penstock.runtime.records import Moment
from penstock.runtime.results import Output, ResultFormat

__all__ = ["Delivery"]


class Delivery(Protocol):
    """Makes the result files of an epoch visible in a sink, all or none, however often tried."""

    @property
    def target(self) -> ResultFormat:
        """Where channels write their results, and in which form."""
        ...

    def prepare(self, schema: object) -> None:
        """See that the sink can be written, before the first epoch."""
        ...

    def deliver(self, moment: Moment, outputs: Sequence[tuple[int, Output]]) -> None:
        """Deliver the files of an epoch; a replay delivers the same again and changes nothing."""
        ...

    def forget(self, outputs: Sequence[Output]) -> None:
        """Clean up after the epoch is committed."""
        ...
