"""From a query to the plan that runs it: rewritten, cut into stages, each with its channels."""

from penstock.compile.channels import channels_of, is_single
from penstock.compile.explain import explain
from penstock.compile.rewrite import Optimised, optimise
from penstock.compile.stages import STRATEGIES, Feed, Port, Stage, Strategy, Subqueries, cut, partitioned_by
from penstock.compile.tail import Piece, Refusing, Tail, compile_tail

__all__ = [
    "STRATEGIES",
    "Feed",
    "Optimised",
    "Piece",
    "Port",
    "Refusing",
    "Stage",
    "Strategy",
    "Subqueries",
    "Tail",
    "channels_of",
    "compile_tail",
    "cut",
    "explain",
    "is_single",
    "optimise",
    "partitioned_by",
]
