"""The aggregates that a query can ask for; each has a merge, so windows can share the partials of panes."""

from typing import Final

from penstock.errors import BadAggregate
from penstock.query.aggregate_call import Aggregate
from penstock.query.resolved import ResolvedAggregate, resolve

__all__ = [
    "NATIVE",
    "Aggregate",
    "ResolvedAggregate",
    "avg",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "min",
    "quantile",
    "resolve",
    "stddev",
    "sum",
    "top_k",
    "var",
]

NATIVE: Final = (
    "count",
    "count_distinct",
    "sum",
    "avg",
    "min",
    "max",
    "var",
    "stddev",
    "first",
    "last",
    "quantile",
    "top_k",
)
_LARGEST_CAPACITY: Final = 2**20


def count(expression: str | None = None) -> Aggregate:
    """The number of tuples, or of those for which the expression is not null.

    >>> str(count()), str(count("speed"))
    ('count()', 'count(speed)')
    """
    return Aggregate("count", () if expression is None else (expression,))


def count_distinct(expression: str, precision: int = 12) -> Aggregate:
    """About how many distinct values there are, nulls left out.

    A HyperLogLog sketch of 2^precision registers; the relative standard error is
    1.04 / sqrt(2^precision), 1.6 % for the default.
    """
    _check_whole("count_distinct", "precision", precision, 4, 21)
    return Aggregate("count_distinct", (expression,), (("precision", precision),))


def sum(expression: str) -> Aggregate:  # noqa: A001 -- users write ps.sum
    """The sum; a bigint for integers, a double for floating point, ten digits wider for decimals."""
    return Aggregate("sum", (expression,))


def avg(expression: str) -> Aggregate:
    """The arithmetic mean as a double."""
    return Aggregate("avg", (expression,))


def min(expression: str) -> Aggregate:  # noqa: A001 -- users write ps.min
    """The least value."""
    return Aggregate("min", (expression,))


def max(expression: str) -> Aggregate:  # noqa: A001 -- users write ps.max
    """The greatest value."""
    return Aggregate("max", (expression,))


def var(expression: str) -> Aggregate:
    """The sample variance as a double, null for fewer than two values."""
    return Aggregate("var", (expression,))


def stddev(expression: str) -> Aggregate:
    """The sample standard deviation as a double, null for fewer than two values."""
    return Aggregate("stddev", (expression,))


def first(expression: str) -> Aggregate:
    """The value with the least event time; of several the least value; nulls are skipped."""
    return Aggregate("first", (expression,))


def last(expression: str) -> Aggregate:
    """The value with the greatest event time; of several the greatest value; nulls are skipped."""
    return Aggregate("last", (expression,))


def quantile(expression: str, q: float, k: int = 200) -> Aggregate:
    """About the value below which the fraction q of the values lies, as a double.

    A KLL sketch of size k; its error is one of rank, about 1.3 % for the default.

    >>> str(quantile("speed", 0.95))
    'quantile(speed, q=0.95, k=200)'
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise BadAggregate(f"quantile() got q={q!r}; give one number from 0 to 1")
    _check_whole("quantile", "k", k, 8, 65_535)
    return Aggregate("quantile", (expression,), (("q", float(q)), ("k", k)))


def top_k(expression: str, k: int = 10, capacity: int | None = None) -> Aggregate:
    """About the k most frequent strings or integers, with their counts.

    A frequent-items sketch of ``capacity`` counters, a power of two, by default at least 16 for each
    item; a count is at most 3.5 / capacity of all tuples away from the truth.

    >>> str(top_k("vehicle", 5))
    'top_k(vehicle, k=5, capacity=128)'
    """
    _check_whole("top_k", "k", k, 1, 10_000)
    counters = 1 << (16 * k - 1).bit_length() if capacity is None else capacity
    _check_whole("top_k", "capacity", counters, k, _LARGEST_CAPACITY)
    if counters < 8 or counters & (counters - 1):
        raise BadAggregate(f"top_k() got capacity={counters}; give a power of two, at least 8")
    return Aggregate("top_k", (expression,), (("k", k), ("capacity", counters)))


def _check_whole(function: str, option: str, value: object, least: int, greatest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
        raise BadAggregate(
            f"{function}() got {option}={value!r}; give a whole number from {least} to {greatest}"
        )
