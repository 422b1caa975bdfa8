"""Every experiment that `penstock reproduce` knows, in the order in which `all` runs them."""

from penstock.experiments.experiment import Experiment
from penstock.experiments.hot_keys import HOT_KEYS
from penstock.experiments.partitioning import PARTITIONING
from penstock.experiments.rate_aware_panes import RATE_AWARE_PANES
from penstock.experiments.relocation import RELOCATION
from penstock.experiments.shuffle_grouping import SHUFFLE_GROUPING
from penstock.experiments.streamcloud import STREAMCLOUD
from penstock.experiments.window_split import WINDOW_SPLIT

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    PARTITIONING,
    RATE_AWARE_PANES,
    RELOCATION,
    HOT_KEYS,
    SHUFFLE_GROUPING,
    *STREAMCLOUD,
    WINDOW_SPLIT,
)
