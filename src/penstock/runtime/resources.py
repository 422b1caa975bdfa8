"""What a key of a stage costs by its frequency, from the operator (003, sections 3.1 and 4.4)."""

from collections.abc import Mapping

from penstock.compile import Stage
from penstock.errors import RunError
from penstock.query import Join
from penstock.routing import LLL, LQL, Resources

__all__ = ["stage_resources"]

_CLL = Resources.of("CLL")


def stage_resources(stage: Stage, given: Mapping[int, Resources | str] | None) -> Resources:
    """The resource functions of a stage: as given for its number, or as its operator has them.

    A time window keeps a partial for each pane that has a tuple, so its state is linear; a join within a
    distance keeps rows and forms pairs of them: linear state, quadratic computation; a join with the last
    rows keeps so many of each key and looks at them for each row: constant state, linear computation.
    """
    chosen = (given or {}).get(stage.number)
    if isinstance(chosen, Resources):
        return chosen
    if isinstance(chosen, str):
        return Resources.of(chosen)
    if chosen is not None:
        raise RunError(
            f"resources of stage {stage.number} are {chosen!r}; give letters such as 'LLL', or Resources"
        )
    operator = stage.operator
    if isinstance(operator, Join):
        return LQL if operator.within is not None else _CLL
    return LLL
