"""No sink: results are for `Run.results` alone."""

from penstock.connect.results import EpochId, Results
from penstock.connect.sink import Delivery, Sink, SinkContext

__all__ = ["UnkeptSink"]


class UnkeptSink(Sink):
    """Keeps nothing: the files of an epoch are deleted once it is committed."""

    def open(self, context: SinkContext) -> Delivery:
        """Nothing to prepare."""
        del context
        return _UnkeptDelivery()

    def __repr__(self) -> str:
        return "results()"


class _UnkeptDelivery(Delivery):
    def deliver(self, epoch: EpochId, results: Results) -> None:
        """Readers have had the results."""
