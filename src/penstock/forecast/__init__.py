"""What the rates of streams will be: pure algorithms on numpy arrays, without I/O, Spark or a clock."""

from penstock.forecast.combined import Combined, CombinedForecaster
from penstock.forecast.forecaster import LEADS, Forecaster, Method
from penstock.forecast.holt import Holt, HoltForecaster
from penstock.forecast.metadata_model import (
    CHARACTERISTICS,
    MetadataForecaster,
    MetadataModel,
    population_defaults,
)
from penstock.forecast.naive import Naive, NaiveForecaster
from penstock.forecast.registry import FORECASTERS, forecaster
from penstock.forecast.regression import Curves, Regression, RegressionForecaster, fit_curves
from penstock.forecast.seasonal import Seasonal, SeasonalForecaster

__all__ = [
    "CHARACTERISTICS",
    "FORECASTERS",
    "LEADS",
    "Combined",
    "CombinedForecaster",
    "Curves",
    "Forecaster",
    "Holt",
    "HoltForecaster",
    "MetadataForecaster",
    "MetadataModel",
    "Method",
    "Naive",
    "NaiveForecaster",
    "Regression",
    "RegressionForecaster",
    "Seasonal",
    "SeasonalForecaster",
    "fit_curves",
    "forecaster",
    "population_defaults",
]
