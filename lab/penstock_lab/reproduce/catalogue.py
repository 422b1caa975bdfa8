"""Every experiment that `penstock reproduce` knows, in the order in which `all` runs them."""

from penstock_lab.reproduce.admission import GATES_OVER_OPTIMAL, REDIRECTIONS
from penstock_lab.reproduce.admission_reasons import REASONS
from penstock_lab.reproduce.admission_series import SERIES
from penstock_lab.reproduce.elastic_merged import MERGED_SKETCH
from penstock_lab.reproduce.elastic_scaling import ELASTIC_SCALING
from penstock_lab.reproduce.experiment import Experiment
from penstock_lab.reproduce.frequency_change import FREQUENCY_CHANGE
from penstock_lab.reproduce.hot_keys import HOT_KEYS
from penstock_lab.reproduce.partitioning import PARTITIONING
from penstock_lab.reproduce.positions import POSITIONS
from penstock_lab.reproduce.qos_nodes import QOS_NODES
from penstock_lab.reproduce.rate_aware_panes import RATE_AWARE_PANES
from penstock_lab.reproduce.relocation import RELOCATION
from penstock_lab.reproduce.shuffle_grouping import SHUFFLE_GROUPING
from penstock_lab.reproduce.streamcloud import STREAMCLOUD
from penstock_lab.reproduce.window_live import WINDOW_LIVE
from penstock_lab.reproduce.window_split import WINDOW_SPLIT

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: tuple[Experiment, ...] = (
    PARTITIONING,
    FREQUENCY_CHANGE,
    POSITIONS,
    REDIRECTIONS,
    GATES_OVER_OPTIMAL,
    REASONS,
    SERIES,
    RATE_AWARE_PANES,
    RELOCATION,
    QOS_NODES,
    HOT_KEYS,
    SHUFFLE_GROUPING,
    *ELASTIC_SCALING,
    MERGED_SKETCH,
    *STREAMCLOUD,
    WINDOW_SPLIT,
    WINDOW_LIVE,
)
