"""Deduplication of tuples by key and event time: the operator, its verb, and what its channels do."""

from penstock.operators.deduplicate.node import Deduplicate
from penstock.operators.deduplicate.verbs import DeduplicateVerbs

__all__ = ["Deduplicate", "DeduplicateVerbs"]
