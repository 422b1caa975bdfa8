"""The registry of forecasting methods by name; the contract suite covers each that is named here."""

from collections.abc import Mapping

from penstock.errors import BadForecast
from penstock.forecast.combined import Combined
from penstock.forecast.forecaster import Forecaster, Method
from penstock.forecast.holt import Holt
from penstock.forecast.metadata_model import MetadataModel
from penstock.forecast.naive import Naive
from penstock.forecast.regression import Regression
from penstock.forecast.seasonal import Seasonal

__all__ = ["FORECASTERS", "forecaster"]

FORECASTERS: Mapping[str, Method] = {
    "last": Naive(),
    "mean": Naive(window=8),
    "holt": Holt(),
    "regression": Regression(),
    "seasonal": Seasonal(),
    "metadata": MetadataModel(),
    "combined": Combined(),
}


def forecaster(name: str, streams: int) -> Forecaster:
    """A forecaster by its name, with the usual settings.

    >>> forecaster("holt", 3).streams
    3
    """
    if name not in FORECASTERS:
        raise BadForecast(f"forecaster {name!r}; give one of {', '.join(FORECASTERS)}")
    return FORECASTERS[name].start(streams)
