"""The constructors of partitioning functions by name: each makes the successor of a hash pair."""

from collections.abc import Callable, Mapping

from penstock.routing.balanced import balanced
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal

__all__ = ["CONSTRUCTORS", "Constructor"]

Constructor = Callable[[HashPair, Frequencies, int, Goal], HashPair]

CONSTRUCTORS: Mapping[str, Constructor] = {
    "scan": scan,
    "redist": redistribute,
    "readj": readjust,
    "balanced": balanced,
}
