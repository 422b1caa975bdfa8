"""Between which values a term lies and how far its computed value may be from DuckDB's.

Real arithmetic is the measure: both what is computed here and what DuckDB computes are at most `error` from
it together, so two terms that are computed further apart than their errors compare the same in DuckDB.
"""

import math
from dataclasses import dataclass, replace

__all__ = ["COARSE", "DOUBLE", "SINGLE", "Extent", "Precision", "Unfit"]


class Unfit(Exception):  # noqa: N818 -- it never leaves this package
    """A term that cannot be estimated: it may be too large, undefined or of another type."""


@dataclass(frozen=True)
class Precision:
    """Of a computed number: its relative and its least absolute error, and the largest that is fit."""

    unit: float
    least: float
    most: float


# Twice what rounding here costs leaves room for the rounding of DuckDB's doubles.
SINGLE = Precision(2.0**-23, 2.0**-125, 1e30)
DOUBLE = Precision(2.0**-51, 2.0**-1020, 1e250)
# The same where DuckDB computes in single precision.
COARSE = Precision(2.0**-22, 2.0**-125, 1e30)
# Whole numbers below this over the unit are exact.
_WHOLE = 0.5


@dataclass(frozen=True)
class Extent:
    """The least and the greatest value, the error, and the greatest size of an integer (0 for no integer).

    >>> calls = Extent(-3.0, 4.0, 0.0, 2.0**31)
    >>> calls.squared(DOUBLE).low, calls.minus(calls, DOUBLE).high
    (0.0, 7.0)
    """

    low: float
    high: float
    error: float = 0.0
    limit: float = 0.0

    @property
    def size(self) -> float:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def middle(self) -> float:
        """Half way between least and greatest."""
        return self.low / 2 + self.high / 2

    def rounded(self, precision: Precision) -> "Extent":
        """After one more rounding, if the values are fit for it."""
        if not self.size <= (self.limit or precision.most):
            raise Unfit
        if self.limit and not self.error and self.size * precision.unit < _WHOLE:
            return self
        return replace(self, error=self.error + self.size * precision.unit + precision.least)

    def moved(self, by: float) -> "Extent":
        """All values less `by`; the error of that is for the next rounding."""
        return replace(self, low=self.low - by, high=self.high - by, limit=0.0)

    def minus(self, other: "Extent", precision: Precision) -> "Extent":
        """The difference."""
        return self._with(other, self.low - other.high, self.high - other.low).rounded(precision)

    def plus(self, other: "Extent", precision: Precision) -> "Extent":
        """The sum."""
        return self._with(other, self.low + other.low, self.high + other.high).rounded(precision)

    def times(self, other: "Extent", precision: Precision) -> "Extent":
        """The product."""
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        error = self.error * other.size + other.error * self.size + self.error * other.error
        return replace(self._with(other, min(corners), max(corners)), error=error).rounded(precision)

    def over(self, other: "Extent", precision: Precision) -> "Extent":
        """The quotient, if the divisor is nowhere near 0."""
        nearest = min(abs(other.low), abs(other.high)) - other.error
        if other.low <= 0 <= other.high or nearest <= 0:
            raise Unfit
        corners = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        size = max(map(abs, corners))
        error = (self.error + size * other.error) / nearest
        return Extent(min(corners), max(corners), error).rounded(precision)

    def absolute(self) -> "Extent":
        """The absolute value, which adds no error."""
        low = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return replace(self, low=low, high=self.size)

    def squared(self, precision: Precision) -> "Extent":
        """The square, never negative."""
        size = self.absolute()
        error = 2 * self.error * size.size + self.error**2
        return replace(size, low=size.low**2, high=size.high**2, error=error).rounded(precision)

    def root(self, precision: Precision) -> "Extent":
        """The square root; of what may be negative there is none."""
        if self.low < 0:
            raise Unfit
        return Extent(math.sqrt(self.low), math.sqrt(self.high), math.sqrt(self.error)).rounded(precision)

    def _with(self, other: "Extent", low: float, high: float) -> "Extent":
        # An integer too large for the narrower type is an error in DuckDB, which DuckDB shall tell.
        limit = min(self.limit, other.limit)
        return Extent(low, high, self.error + other.error, limit)
