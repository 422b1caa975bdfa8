"""Which stream enters through which gate: forecasts and metadata decide, over bin packing ([000] §2)."""

from penstock.control.admission.algorithm import Rules, Strategy, assign
from penstock.control.admission.best_fit import best_fit
from penstock.control.admission.bounds import fewest_bins, lower_bound
from penstock.control.admission.capacity import Price, fit_price
from penstock.control.admission.cluster import NOWHERE, Cluster, Outlook, Placement
from penstock.control.admission.decision import Admit, Decision, DrainGate, Redirect, StartGate
from penstock.control.admission.expectations import Expecting, Horizon
from penstock.control.admission.first_fit import first_fit
from penstock.control.admission.forecast_intervals import ForecastIntervals
from penstock.control.admission.limits import Limits
from penstock.control.admission.packing import Packing
from penstock.control.admission.policy import Admission, Expectations, Planner, Seen
from penstock.control.admission.scale_in import scale_in
from penstock.control.admission.strategies import ARD, ARI, DRF, DRF_M, PAR, STRATEGIES, strategy

__all__ = [
    "ARD",
    "ARI",
    "DRF",
    "DRF_M",
    "NOWHERE",
    "PAR",
    "STRATEGIES",
    "Admission",
    "Admit",
    "Cluster",
    "Decision",
    "DrainGate",
    "Expectations",
    "Expecting",
    "ForecastIntervals",
    "Horizon",
    "Limits",
    "Outlook",
    "Packing",
    "Placement",
    "Planner",
    "Price",
    "Redirect",
    "Rules",
    "Seen",
    "StartGate",
    "Strategy",
    "assign",
    "best_fit",
    "fewest_bins",
    "first_fit",
    "fit_price",
    "lower_bound",
    "scale_in",
    "strategy",
]
