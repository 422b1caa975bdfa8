"""Functions over rows: in channels of their own where that is asked for, and the verb of all maps."""

from penstock.operators.channelled_map.node import ChannelledMap
from penstock.operators.channelled_map.verbs import MapVerbs

__all__ = ["ChannelledMap", "MapVerbs"]
