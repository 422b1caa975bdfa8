"""The strategies of [000] §6.1.2 as values of Algorithm 1; the worked example tells them apart.

| | leave by falling | work counted | gates |
| --- | --- | --- | --- |
| PAR | all leave | last mean | all empty, numbered afresh |
| ARI | minus the last mean | last mean | kept |
| ARD | last mean | last mean | kept |
| DRF | forecast of the horizon minus that of the next period | forecast of the next period | kept |
| DRF-M | the same with what metadata expect for the horizon, if anything | that, or the forecast | kept |

The rise that DRF orders by is the trend alone under Holt's forecast, and 0 if the horizon is one period.
"""

from collections.abc import Mapping

import numpy as np

from penstock.control.admission.algorithm import Strategy
from penstock.control.admission.cluster import Floats, Outlook
from penstock.errors import BadAdmission

__all__ = ["ARD", "ARI", "DRF", "DRF_M", "PAR", "STRATEGIES", "strategy"]


def _last(outlook: Outlook) -> Floats:
    return outlook.last


def _least_first(outlook: Outlook) -> Floats:
    return -outlook.last


def _next(outlook: Outlook) -> Floats:
    return outlook.next


def _rise(outlook: Outlook) -> Floats:
    return outlook.later - outlook.next


def _declared(outlook: Outlook) -> Floats:
    return np.where(np.isnan(outlook.declared), outlook.next, outlook.declared)


def _declared_rise(outlook: Outlook) -> Floats:
    return np.where(np.isnan(outlook.declared), outlook.later, outlook.declared) - outlook.next


PAR = Strategy("PAR", charged=_last, urgency=_last, order=_last, afresh=True)
ARI = Strategy("ARI", charged=_last, urgency=_least_first, order=_last)
ARD = Strategy("ARD", charged=_last, urgency=_last, order=_last)
DRF = Strategy("DRF", charged=_next, urgency=_rise, order=_next)
DRF_M = Strategy("DRF-M", charged=_declared, urgency=_declared_rise, order=_declared)

STRATEGIES: Mapping[str, Strategy] = {each.name: each for each in (PAR, ARI, ARD, DRF, DRF_M)}


def strategy(name: str) -> Strategy:
    """The strategy of this name.

    >>> strategy("DRF-M").name
    'DRF-M'
    """
    if name not in STRATEGIES:
        raise BadAdmission(f"no strategy {name!r}; give one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
