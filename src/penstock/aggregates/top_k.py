"""About the most frequent values and their counts: frequent-items sketches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, Final

import pyarrow as pa

from penstock.aggregates.aggregate import Aggregate, Agreement, Definition, Parameter, check_whole, defined_by
from penstock.aggregates.modifiers import modified
from penstock.aggregates.partials import Lowered, PaneColumns, arrow_of
from penstock.aggregates.pools import Sketch, datasketches
from penstock.errors import BadAggregate
from penstock.expressions import types
from penstock.expressions.scalar import Expression

__all__ = ["FrequentItems", "top_k"]

_ITEM: Final = Parameter(
    "a string or an integer", lambda type_: type_ == "string" or types.is_integer(type_), "cast it"
)
_LARGEST_CAPACITY: Final = 2**20


@dataclass(frozen=True, slots=True)
class TopKDefinition(Definition):
    """Estimates from `capacity` counters; Spark's own sketch function forms them, so only Spark can."""

    name = "top_k"
    sql_names = ("top_k",)
    numbers = {"top_k": (0, 2)}  # noqa: RUF012 -- a ClassVar of the base
    takes = (_ITEM,)
    gives = "`array<struct<item,count>>`, the item of the argument's type, the count a bigint"
    agreement = Agreement.ESTIMATE
    detail = (
        "exact up to `capacity` distinct values; beyond, a count is at most 3.5 / capacity of all tuples "
        "away from the truth. Nulls are left out, which Spark's `approx_top_k` counts"
    )
    examples = ({}, {"k": 3})

    k: int
    capacity: int

    def result_type(self, given: Sequence[str | None]) -> str | None:
        """Items with their counts, the most frequent first."""
        return given[0] and f"array<struct<item:{given[0]},count:bigint>>"

    def lower(self, arguments: Sequence[Expression], pane: PaneColumns) -> Lowered:
        """One sketch for each pane."""
        (value,) = arguments
        strings = pa.types.is_string(arrow_of(value))
        kind = FrequentItems(max(3, ceil(log2(self.capacity / 0.75))), strings)
        item = value.sql if strings else f"cast({value.sql} AS bigint)"
        held = f"approx_top_k_accumulate({item}, {self.capacity}) FILTER (WHERE {value.sql} IS NOT NULL)"
        finish = TopItems(pane.partial(kind, (f"({held}).sketch",), None).name, kind, self.k, arrow_of(value))
        return finish, finish.type

    def spark_sql(self, arguments: Sequence[str], _time: str) -> str:
        """Spark's estimate counts nulls too, and leaves the order of equal counts open."""
        return f"approx_top_k({arguments[0]}, {self.k}, {self.capacity})"

    def measured_error(self, found: Any, columns: Sequence[Sequence[Any]]) -> float:
        """The largest distance of a reported count, or of the k-th one, from the truth, of all tuples."""
        true = Counter(value for value in columns[0] if value is not None)
        most = [count for _, count in true.most_common(self.k)]
        if len(found) != len(most):
            return float("inf")
        pairs = zip(found, most, strict=True)
        off = [max(abs(each["count"] - true[each["item"]]), abs(each["count"] - top)) for each, top in pairs]
        return max(off, default=0) / max(true.total(), 1)

    @property
    def error_bound(self) -> float:
        """Guaranteed by the sketch."""
        return 3.5 / self.capacity


@dataclass(frozen=True)
class FrequentItems(Sketch):
    """Misra-Gries frequent items in a map of 2^log_size, of strings or of bigints.

    A reported count is off by at most 3.5 / 2^log_size of the total.
    """

    log_size: int
    strings: bool

    def parse(self, data: bytes) -> Any:
        """A sketch of the configured item type."""
        if self.strings:
            return datasketches().frequent_strings_sketch.deserialize(data)
        return datasketches().frequent_items_sketch.deserialize(data, datasketches().PyLongsSerDe())

    def union(self, one: Any, other: Any) -> Any:
        """Counters added, then purged to size."""
        library = datasketches()
        make = library.frequent_strings_sketch if self.strings else library.frequent_items_sketch
        both = make(self.log_size)
        both.merge(one)
        both.merge(other)
        return both

    def serialize(self, sketch: Any) -> bytes:
        """Items and counters."""
        return bytes(sketch.serialize() if self.strings else sketch.serialize(datasketches().PyLongsSerDe()))


@dataclass(frozen=True)
class TopItems:
    """The k most frequent items with their estimated counts, most frequent first."""

    column: str
    kind: FrequentItems
    k: int
    item: Any

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        """Lists of (item, count)."""
        return pa.array([self._one(data) for data in columns[self.column].to_pylist()], self.type)

    @property
    def type(self) -> Any:
        """array<struct<item, count>>."""
        return pa.list_(pa.struct([("item", self.item), ("count", pa.int64())]))

    def _one(self, data: bytes | None) -> list[dict[str, Any]]:
        if not data:
            return []
        errors = datasketches().frequent_items_error_type
        found = self.kind.parse(data).get_frequent_items(errors.NO_FALSE_NEGATIVES)
        # Equal counts in the order of the items, so that a replay gives the same list.
        ranked = sorted(found, key=lambda item: (-item[1], item[0]))[: self.k]
        return [{"item": item, "count": count} for item, count, _, _ in ranked]


@defined_by(TopKDefinition)
def top_k(
    expression: str,
    k: int = 10,
    capacity: int | None = None,
    *,
    where: str | None = None,
    distinct: bool = False,
) -> Aggregate:
    """About the k most frequent strings or integers, with their counts: an approximation, in little space.

    A frequent-items sketch of ``capacity`` counters, a power of two, by default at least 16 for each
    item. Counts are exact up to ``capacity`` distinct values; beyond, a count is at most 3.5 / capacity of
    all tuples away from the truth: with 256 counters, 1.4 % of the tuples of the group. Nulls are left out.

    >>> str(top_k("vehicle", 5))
    'top_k(vehicle, k=5, capacity=128)'
    """
    check_whole("top_k", "k", k, 1, 10_000)
    counters = 1 << (16 * k - 1).bit_length() if capacity is None else capacity
    check_whole("top_k", "capacity", counters, k, _LARGEST_CAPACITY)
    if counters < 8 or counters & (counters - 1):
        raise BadAggregate(f"top_k() got capacity={counters}; give a power of two, at least 8")
    return modified(Aggregate(TopKDefinition(k, counters), (expression,)), where, distinct)
