"""Which stream enters through which gate: forecasts and metadata decide, over bin packing ([000] §2)."""

from penstock.control.admission.algorithm import Rules, Strategy, assign
from penstock.control.admission.best_fit import best_fit
from penstock.control.admission.capacity import CORE, USUAL_PRICE, Capacities, Price, PriceFit, fit_price
from penstock.control.admission.cluster import NOWHERE, Cluster, Outlook, Placement
from penstock.control.admission.costs import Costs, StreamCosts
from penstock.control.admission.decision import Admit, Decision, DrainGate, Redirect, StartGate
from penstock.control.admission.expectations import Expecting, Horizon
from penstock.control.admission.forecast_intervals import ForecastIntervals
from penstock.control.admission.limits import Budget, Limits
from penstock.control.admission.packing import Packing
from penstock.control.admission.policy import (
    NAME,
    Admission,
    AdmissionController,
    Arrivals,
    Expectations,
    Planner,
    Seen,
)
from penstock.control.admission.recording import (
    AdmissionRecording,
    LineWriter,
    RecordedAdmission,
    admission_differences,
    replayed_admission,
    ruling_json,
)
from penstock.control.admission.scale_in import scale_in
from penstock.control.admission.setup import STRATEGY_NAMES, AdmissionSetup
from penstock.control.admission.strategies import ARD, ARI, DRF, DRF_M, PAR, STRATEGIES, strategy

__all__ = [
    "ARD",
    "ARI",
    "CORE",
    "DRF",
    "DRF_M",
    "NAME",
    "NOWHERE",
    "PAR",
    "STRATEGIES",
    "STRATEGY_NAMES",
    "USUAL_PRICE",
    "Admission",
    "AdmissionController",
    "AdmissionRecording",
    "AdmissionSetup",
    "Admit",
    "Arrivals",
    "Budget",
    "Capacities",
    "Cluster",
    "Costs",
    "Decision",
    "DrainGate",
    "Expectations",
    "Expecting",
    "ForecastIntervals",
    "Horizon",
    "Limits",
    "LineWriter",
    "Outlook",
    "Packing",
    "Placement",
    "Planner",
    "Price",
    "PriceFit",
    "RecordedAdmission",
    "Redirect",
    "Rules",
    "Seen",
    "StartGate",
    "Strategy",
    "StreamCosts",
    "admission_differences",
    "assign",
    "best_fit",
    "fit_price",
    "replayed_admission",
    "ruling_json",
    "scale_in",
    "strategy",
]
