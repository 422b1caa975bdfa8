"""The condition of a join over pairs: estimated where it is arithmetic, evaluated by DuckDB elsewhere."""

from penstock.operators.joins.condition.matching import Matcher

__all__ = ["Matcher"]
