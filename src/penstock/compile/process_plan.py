"""The physical plan of a keyed stateful function: what is sent to channels, what they keep and give."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.compile.lifts import TIME
from penstock.compile.partials import Column
from penstock.compile.plan import Describe
from penstock.expressions.types import arrow_type
from penstock.keyed import Shapes
from penstock.query import Derived, Process, quoted

__all__ = ["HASH", "KNOWN", "TIMER", "ProcessPlan", "compile_process"]

HASH = "_ps_hash"
"""The 64-bit hash of a key."""
TIMER = "_ps_timer"
"""When the timer of a key fires, in microseconds; the largest number if it is not set."""
KNOWN = "_ps_known"
"""Whether a key has a state."""

_KEY = "_ps_key{}"


@dataclass(frozen=True)
class ProcessPlan:
    """Everything a channel has to know of a function; the same object serves every epoch.

    `keys` and `columns` are sent, as SQL over the port; a column that is a key or the time is sent once.
    """

    operator: Process
    keys: tuple[Column, ...]
    columns: tuple[Column, ...]
    time: Any

    @property
    def sent(self) -> Any:
        """The columns of a row in a channel and in a segment of rows."""
        fields = [(key.name, key.type) for key in self.keys]
        fields += [(HASH, pa.int64()), (TIME, pa.int64())]
        return pa.schema(fields + [(each.name, each.type) for each in self.columns])

    @property
    def kept(self) -> Any:
        """The columns of a key in a segment of states."""
        fields = [(key.name, key.type) for key in self.keys]
        fields += [(HASH, pa.int64()), (TIMER, pa.int64()), (KNOWN, pa.bool_())]
        return pa.schema([*fields, *self.shapes.state])

    @property
    def shapes(self) -> Shapes:
        """What the function declares."""
        return Shapes(
            _nullable(self.operator.state.arrow()), _nullable(self.operator.result.arrow()), self.time
        )

    @property
    def schema(self) -> Any:
        """The columns of a result, then its event time in microseconds."""
        fields = [(self.operator.time, self.time)]
        fields += [(name, key.type) for (name, _), key in zip(self.operator.keys, self.keys, strict=True)]
        return pa.schema([*fields, *self.shapes.result, (TIME, pa.int64())])

    def rows(self, table: Any) -> Any:
        """What the function sees of rows: the event time, and the columns in sight that are no keys."""
        names = [each.name for each in self.columns]
        columns = [table[TIME].cast(self.time), *table.select(names).columns]
        return pa.table(columns, names=[self.operator.time, *names])

    def result(self, keys: Any, results: Any, times: Any) -> Any:
        """Result rows in full, from the keys, what the function gave and the times of both."""
        micros = pa.array(times)
        return pa.table([micros.cast(self.time), *keys.columns, *results.columns, micros], schema=self.schema)


def compile_process(relation: Derived, describe: Describe) -> ProcessPlan:
    """The plan of a relation that is made by a function, with what Spark says about the types."""
    operator = relation.operator
    assert isinstance(operator, Process), operator
    texts = [key.sql for _, key in operator.keys]
    sent_as_keys = {text.lower() for text in texts}
    names = [
        name
        for name in operator.given.names
        if quoted(name).lower() not in sent_as_keys and name.lower() != operator.time.lower()
    ]
    found = [arrow_type(type_) for type_, _ in describe([*texts, *map(quoted, names)])]
    keys = tuple(
        Column(_KEY.format(place), text, type_)
        for place, (text, type_) in enumerate(zip(texts, found, strict=False))
    )
    columns = tuple(
        Column(name, quoted(name), type_) for name, type_ in zip(names, found[len(texts) :], strict=True)
    )
    return ProcessPlan(operator, keys, columns, arrow_type(relation.time_type))


def _nullable(schema: Any) -> Any:
    return pa.schema([field.with_nullable(True) for field in schema])
