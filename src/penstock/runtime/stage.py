"""A stage ready to run: made once, and unchanged from epoch to epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compile import Port, Stage
from penstock.operators.kernel import Kernel

__all__ = ["StageRunner", "hosted_by", "members_of"]


@dataclass(frozen=True)
class StageRunner:
    """A stage and its kernel, made once when a run starts."""

    stage: Stage
    kernel: Kernel

    @property
    def number(self) -> int:
        """The number of the stage."""
        return self.stage.number

    @property
    def ports(self) -> tuple[Port, ...]:
        """What feeds each of its ports."""
        return self.stage.ports

    @property
    def hosted(self) -> bool:
        """Whether it runs in the channels of another stage."""
        return self.stage.host is not None


def hosted_by(runners: Sequence[StageRunner], number: int) -> list[StageRunner]:
    """The stages that run in the channels of a stage, each after the one that feeds it."""
    return members_of(runners, number)[1:]


def members_of(runners: Sequence[StageRunner], number: int) -> list[StageRunner]:
    """A stage, and those that run in its channels, each after the one that feeds it."""
    members = {number}
    for runner in runners:
        if runner.stage.host in members:
            members.add(runner.number)
    return [runner for runner in runners if runner.number in members]
