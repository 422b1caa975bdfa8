# ruff: noqa: N818 -- a name that says what is wrong needs no suffix
"""The errors of the lab; like the product's they say what was given, what was expected and what to do."""

from penstock.errors import PenstockError

__all__ = ["BadBench", "BadData", "BadSimulation", "MissingData", "UnknownExperiment"]


class BadBench(PenstockError):
    """A measurement was asked for that does not exist."""


class BadData(PenstockError):
    """A file does not hold the data that it was given for."""


class MissingData(PenstockError):
    """An experiment needs a file that was not given."""

    def __init__(self, experiment: str, option: str) -> None:
        super().__init__(f"experiment {experiment} needs a file; give it with {option} PATH")


class BadSimulation(PenstockError):
    """A cluster on paper is described in a way that cannot be run."""


class UnknownExperiment(PenstockError):
    """No experiment has this id."""

    def __init__(self, given: str, known: list[str]) -> None:
        super().__init__(f"no experiment {given!r}; give one or more of {', '.join(known)}, or: all")
