"""The map side of a port on Arrow: what its exchange sends, combined where that pays, and to which channels.

Whether partials are sent or raw rows is decided by the first rows of each task, so any attempt of it decides
the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.distribution.distribution import Placer, by_channel
from penstock.expressions.duck import check, evaluate
from penstock.expressions.types import from_arrow
from penstock.functions import DEFAULT, SqlSetting, Uncertified, duck_name, passed_or_translated
from penstock.operators.exchange import TIME, Exchange
from penstock.operators.kernel import Kernel
from penstock.routing.spark_hash import spark_hash
from penstock.runtime.dataflow.payloads import MOST_BYTES, Payload, TaskId, once
from penstock.runtime.dataflow.receipts import SentSeen

__all__ = ["OpenPort", "PortMap", "port_map"]

_FLUSHED: Final = 1 << 20
"""So many rows are combined and sent together."""
_FLUSHED_BYTES: Final = 256 * 2**20
_TRIAL: Final = 1 << 16
"""So many rows say whether combining pays."""
_PAYS: Final = 1.3
"""Rows for each partial from which on partials are sent."""


@dataclass(frozen=True)
class PortMap:
    """From the rows of a port to what its exchange sends.

    `sql` is a SELECT over `input` in DuckDB's SQL; without it the columns are those of `names`. If Spark has
    `evaluated` them, they are there already, and as partials if the exchange says that Spark forms these.
    """

    stage: int
    port: int
    kernel: Kernel
    sql: str | None = None
    names: tuple[str, ...] = ()
    evaluated: bool = False

    @property
    def exchange(self) -> Exchange:
        """What the port sends."""
        return self.kernel.exchanges[self.port]

    @property
    def formed(self) -> bool:
        """Whether Spark has formed partials."""
        return self.evaluated and self.exchange.combine is not None and bool(self.exchange.combine.sql)

    def rows(self, table: Any) -> Any:
        """The rows as the exchange sends them."""
        exchange = self.exchange
        if self.formed:
            return self.kernel.received(table)
        names = [each.name for each in exchange.columns]
        if self.evaluated:
            found = table
        elif self.sql is None:
            taken = {TIME: table[TIME]} | dict(zip(names, (table[name] for name in self.names), strict=True))
            found = pa.table(taken)
        else:
            found = evaluate(self.sql, table, "; ".join(each.sql for each in exchange.columns))
        schema = pa.schema([(each.name, each.type) for each in exchange.columns])
        sent = found.select(names)
        sent = sent if sent.schema.equals(schema) else sent.cast(schema)
        if exchange.bucket is not None:
            bucket = exchange.bucket
            number = np.floor_divide(found[TIME].to_numpy() - bucket.offset, bucket.width)
            sent = sent.append_column(bucket.name, pa.array(number))
        if exchange.keys and exchange.nulls == "never":
            sent = _known(sent, exchange.keys)
        for each in exchange.digests:
            hashes = spark_hash([sent[name] for name in each.of], sent.num_rows)
            sent = sent.append_column(each.name, pa.array(each.value(hashes)))
        return sent


def _known(table: Any, keys: tuple[str, ...]) -> Any:
    """Without rows that have a null among these columns."""
    known = None
    for name in keys:
        if table[name].null_count:
            valid = table[name].is_valid()
            known = valid if known is None else pc.and_(known, valid)
    return table if known is None else table.filter(known)


def port_map(
    kernel: Kernel, stage: int, port: int, schema: Any, setting: SqlSetting = DEFAULT
) -> PortMap | None:
    """How rows of a schema become rows of an exchange; None where only Spark can evaluate them."""
    exchange = kernel.exchanges[port]
    if exchange.combine is not None and exchange.combine.sql:
        return None
    types = {each.name: from_arrow(each.type) for each in schema}
    wanted = [each for each in exchange.columns if each.name != TIME]
    try:
        plain = [each.bare(types) for each in exchange.columns]
        if all(each is not None for each in plain):
            return PortMap(stage, port, kernel, names=tuple(each for each in plain if each))
        columns = [
            f"{passed_or_translated(each.sql, types, setting).sql} AS {duck_name(each.name)}"
            for each in wanted
        ]
    except Uncertified:
        return None
    sql = f"SELECT {', '.join([*columns, TIME])} FROM input"
    check(sql, schema, "; ".join(each.sql for each in wanted))
    return PortMap(stage, port, kernel, sql)


@dataclass
class OpenPort:
    """The rows of one port in one task, on their way to channels."""

    way: PortMap
    placer: Placer
    task: TaskId
    hop: int = 1
    seen: SentSeen = field(default_factory=SentSeen)
    _held: list[Any] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0
    _combines: bool | None = None
    _number: int = 0

    def take(self, table: Any) -> Iterator[Payload]:
        """Take rows of the port; payloads leave when there are many rows."""
        if TIME in table.column_names:
            self.seen += SentSeen(latest=pc.max(table[TIME]).as_py())
        yield from self._take(self.way.rows(table))

    def _take(self, rows: Any) -> Iterator[Payload]:
        # Where rows are cut must not depend on how they came.
        while self._rows + rows.num_rows >= _FLUSHED:
            room = _FLUSHED - self._rows
            self._hold(rows.slice(0, room))
            rows = rows.slice(room)
            yield from self.flush()
        if rows.num_rows:
            self._hold(rows)
        if self._bytes >= _FLUSHED_BYTES:
            yield from self.flush()

    def _hold(self, rows: Any) -> None:
        self._held.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes

    def flush(self) -> Iterator[Payload]:
        """Send what is held."""
        if not self._rows:
            return
        table = pa.concat_tables(self._held) if len(self._held) > 1 else self._held[0]
        self._held, self._rows, self._bytes = [], 0, 0
        self._note(table)
        formed = self.way.formed
        if self.hop and not formed and self._pays(table):
            table, formed = self.way.kernel.form(table), True
        yield from self._sent(table, formed=formed)

    def partials(self, table: Any) -> Iterator[Payload]:
        """Send partials."""
        yield from self._sent(table, formed=True)

    def _sent(self, table: Any, *, formed: bool) -> Iterator[Payload]:
        self.seen += SentSeen(rows=table.num_rows)
        for channel, rows in by_channel(table, self.placer, once(table)):
            for piece in _pieces(rows):
                self._number += 1
                yield Payload.of(
                    piece,
                    stage=self.way.stage,
                    channel=channel,
                    port=self.way.port,
                    formed=formed,
                    hop=self.hop,
                    task=self.task,
                    number=self._number,
                )

    def _note(self, table: Any) -> None:
        bucket = self.way.exchange.bucket
        combine = self.way.exchange.combine
        weight = combine.weight if combine is not None and self.way.formed else None
        tuples = table.num_rows if weight is None else int(pc.sum(table[weight]).as_py() or 0)
        if bucket is None:
            self.seen += SentSeen(tuples=tuples)
            return
        ends: Mapping[str, int] = pc.min_max(table[bucket.name]).as_py()
        self.seen += SentSeen(tuples=tuples, first=ends["min"], last=ends["max"])

    def _pays(self, table: Any) -> bool:
        """Whether partials are sent; the first rows of the task decide."""
        if self._combines is None:
            self._combines = self.way.exchange.combine is not None and self._shrinks(table.slice(0, _TRIAL))
        return self._combines

    def _shrinks(self, rows: Any) -> bool:
        return bool(rows.num_rows >= _PAYS * self.way.kernel.form(rows).num_rows)


def _pieces(rows: Any) -> Iterator[Any]:
    """Rows in payloads of a bearable size."""
    count = max(1, -(-rows.nbytes // MOST_BYTES))
    size = -(-rows.num_rows // count)
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size)
