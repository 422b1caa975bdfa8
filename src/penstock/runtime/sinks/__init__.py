"""Delivery of results: channels write files, and a delivery makes an epoch's files the sink's own."""

from penstock.errors import BadSink
from penstock.query import ConsoleSink, DeltaSink, EachSink, MemorySink, ParquetSink, Sink
from penstock.runtime.sinks.delivery import Delivery
from penstock.runtime.sinks.delta import DeltaDelivery
from penstock.runtime.sinks.local import LocalDelivery, printer
from penstock.runtime.sinks.parquet import ParquetDelivery
from penstock.runtime.storage import Location

__all__ = ["Delivery", "delivery_to"]


def delivery_to(sink: Sink, scratch: Location, name: str) -> Delivery:
    """The delivery to a declared sink; `scratch` is for results that pass through the driver."""
    if isinstance(sink, ParquetSink):
        return ParquetDelivery(Location.of(sink.path), sink.compression)
    if isinstance(sink, DeltaSink):
        return DeltaDelivery(Location.of(sink.path), sink.app or name)
    if isinstance(sink, MemorySink):
        return LocalDelivery(scratch, lambda table, moment: sink.append(moment, table))
    if isinstance(sink, ConsoleSink):
        return LocalDelivery(scratch, printer(sink.rows))
    if isinstance(sink, EachSink):
        return LocalDelivery(scratch, lambda table, moment: sink.function(table, moment.epoch))
    raise BadSink(
        f"sink is {type(sink).__name__}; give ps.parquet(), ps.delta(), ps.memory(), ps.console() or "
        "ps.each()"
    )
