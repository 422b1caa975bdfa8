"""Joins of two relations: the operator, its verbs, and what its channels do."""

from penstock.operators.joins.node import How, Join, JoinKey, common_type
from penstock.operators.joins.verbs import JoinVerbs, On, join_of

__all__ = ["How", "Join", "JoinKey", "JoinVerbs", "On", "common_type", "join_of"]
