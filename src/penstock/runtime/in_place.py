"""An exchange without a shuffle: a stage in the channels of the one before it takes rows where they are.

If two neighbours partition tuples alike, the output of the first in a channel is all that the second needs
there ([002] §III.F). DuckDB evaluates the columns of the exchange on Arrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.expressions.duck import check, evaluate
from penstock.expressions.types import from_arrow
from penstock.functions import DEFAULT, SqlSetting, duck_name, passed_or_translated
from penstock.operators.exchange import TIME, Exchange
from penstock.runtime.spark.exchange import PORT, SLOT, slots

__all__ = ["InPlace", "InPlacePorts", "in_place"]


@dataclass(frozen=True)
class InPlace:
    """A SELECT over the rows of the channel, and the exchange whose columns it gives."""

    sql: str
    exchange: Exchange

    def rows(self, table: Any) -> Any:
        """The rows as the exchange would have brought them."""
        names = [each.name for each in self.exchange.columns]
        schema = pa.schema([*self.exchange.schema, *([] if TIME in names else [(TIME, pa.int64())])])
        found = evaluate(self.sql, table).select(schema.names).cast(schema)
        bucket = self.exchange.bucket
        if bucket is None:
            return found
        number = np.floor_divide(found[TIME].to_numpy() - bucket.offset, bucket.width)
        return found.append_column(bucket.name, pa.array(number))


@dataclass(frozen=True)
class InPlacePorts:
    """The exchanges of several ports, whose rows come together as one shuffle would have brought them."""

    ports: tuple[InPlace, ...]

    def rows(self, tables: Sequence[Any | None]) -> Any:
        """The rows of all ports in slots; None is a port without rows."""
        exchanges = [each.exchange for each in self.ports]
        sent = []
        for port, (each, table, places) in enumerate(zip(self.ports, tables, slots(exchanges), strict=True)):
            if table is not None:
                rows = each.rows(table).select(each.exchange.schema.names)
                number = pa.array(np.full(rows.num_rows, port, np.int32))
                sent.append(pa.table([number, *rows.columns], names=[PORT, *map(SLOT.format, places)]))
        return pa.concat_tables(sent, promote_options="default")


def in_place(exchange: Exchange, schema: Any, setting: SqlSetting = DEFAULT) -> InPlace:
    """How rows of a schema become rows of an exchange."""
    types = {each.name: from_arrow(each.type) for each in schema}
    wanted = [each for each in exchange.columns if each.name != TIME]
    columns = [
        f"{passed_or_translated(each.sql, types, setting).sql} AS {duck_name(each.name)}" for each in wanted
    ]
    sql = f"SELECT {', '.join([*columns, TIME])} FROM input"
    check(sql, schema, "; ".join(each.sql for each in wanted))
    return InPlace(sql, exchange)
