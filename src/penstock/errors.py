# ruff: noqa: N818 -- a name that says what is wrong needs no suffix
"""Every error of Penstock: each says what was given, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self

__all__ = [
    "AggregateOverflow",
    "BadAggregate",
    "BadDuration",
    "BadExpression",
    "BadGate",
    "BadJoin",
    "BadLimit",
    "BadMap",
    "BadMessage",
    "BadMetadata",
    "BadName",
    "BadProcess",
    "BadRescale",
    "BadRouting",
    "BadRows",
    "BadSchema",
    "BadSimulation",
    "BadSink",
    "BadSource",
    "BadToken",
    "BadWindow",
    "BufferFull",
    "CheckpointError",
    "ClosedClient",
    "DamagedCheckpoint",
    "DamagedLog",
    "ForeignCheckpoint",
    "GateAway",
    "GateError",
    "IngestError",
    "LogFull",
    "MissingSegment",
    "NoCheckpoint",
    "NoGate",
    "NotAcknowledged",
    "NotAllowed",
    "PenstockError",
    "QueryError",
    "RangeNotHeld",
    "Refused",
    "RunError",
    "SequenceGap",
    "SinkError",
    "StreamAhead",
    "TooLarge",
    "TooMany",
    "UnknownColumn",
    "UnknownEpoch",
    "UnknownExperiment",
    "UnknownForm",
    "UnknownInlet",
    "UnknownKey",
    "UnknownStage",
    "UnknownStrategy",
    "WrongSchema",
    "WrongType",
]


class PenstockError(Exception):
    """Anything that Penstock itself finds wrong."""


class QueryError(PenstockError):
    """The query as written cannot be run."""


class UnknownColumn(QueryError):
    """A column is named that the stream or the result does not have."""

    @classmethod
    def among(cls, name: str, known: Iterable[str]) -> Self:
        """The error for one name, with the nearest known names and all of them.

        >>> print(UnknownColumn.among("sped", ["time", "speed"]))
        no column 'sped'; did you mean 'speed'? The columns are: time, speed
        """
        names = list(known)
        lowered = {each.lower(): each for each in names}
        near = [repr(lowered[each]) for each in get_close_matches(name.lower(), lowered)]
        hint = f"did you mean {' or '.join(near)}? The" if near else "the"
        return cls(f"no column {name!r}; {hint} columns are: {', '.join(names)}")


class BadDuration(QueryError):
    """A duration has no fixed length, no unit or no whole number of microseconds."""


class BadWindow(QueryError):
    """A window has a size, slide or offset that cannot work."""


class WrongType(QueryError):
    """A column or an expression has a type that does not fit its use."""


class BadExpression(QueryError):
    """An expression or a statement does not parse or is not allowed where it stands."""


class BadSchema(QueryError):
    """A schema cannot be read, or names something twice or something reserved."""


class BadSource(QueryError):
    """A source is declared in a way that cannot be read."""


class BadSink(QueryError):
    """A sink is declared in a way that cannot be written."""


class BadAggregate(QueryError):
    """An aggregate is called or defined in a way that cannot be computed."""


class BadJoin(QueryError):
    """A join is stated in a way that cannot be computed, or is given rows that it cannot take."""


class BadMap(QueryError):
    """A function given to map() does not return what was declared."""


class BadProcess(QueryError):
    """A function given to process() is declared or answers in a way that cannot be computed."""


class BadName(QueryError):
    """A name is not an identifier, is reserved, or is used twice."""


class UnknownStrategy(QueryError):
    """No strategy of cutting a query into stages has this name."""

    def __init__(self, given: object, known: Iterable[str]) -> None:
        super().__init__(f"no strategy {given!r}; give one of {', '.join(known)}")


class UnknownForm(QueryError):
    """A plan cannot be shown in this form."""

    def __init__(self, given: object, known: Iterable[str]) -> None:
        super().__init__(f"no form {given!r} of a plan; give one of {', '.join(known)}")


class CheckpointError(PenstockError):
    """The checkpoint cannot be used."""


class ForeignCheckpoint(CheckpointError):
    """The checkpoint belongs to another query."""


class DamagedCheckpoint(CheckpointError):
    """A file of the checkpoint is not what its record says."""


class MissingSegment(CheckpointError):
    """A segment that the manifest names is gone."""


class NoCheckpoint(CheckpointError):
    """A folder is no checkpoint."""


class UnknownEpoch(CheckpointError):
    """The checkpoint has no manifest of this epoch, or no longer."""


class UnknownStage(CheckpointError):
    """The query of the checkpoint has no stage of this number."""


class UnknownKey(CheckpointError):
    """No state of this key is there, or it cannot be a key at all."""


class RunError(PenstockError):
    """A run failed at what it was doing."""


class BadRescale(RunError):
    """A stage was asked to run on channels that it cannot have."""


class AggregateOverflow(RunError):
    """An aggregate left the range of its result type."""


class SinkError(RunError):
    """A sink did not take the results of an epoch."""


class BadRouting(PenstockError):
    """A router or sketch is asked for something that it cannot be."""


class BadSimulation(PenstockError):
    """A cluster on paper is described in a way that cannot be run."""


class UnknownExperiment(PenstockError):
    """No experiment has this id."""

    def __init__(self, given: str, known: list[str]) -> None:
        super().__init__(f"no experiment {given!r}; give one or more of {', '.join(known)}, or: all")


class IngestError(PenstockError):
    """Rows cannot enter through a gate."""


class BadLimit(IngestError):
    """A limit of a client has a value that cannot work."""


class BadRows(IngestError):
    """Rows do not fit the schema of their stream."""


class BufferFull(IngestError):
    """The buffer of a client had no room for rows within the time given; none of them was taken."""


class NotAcknowledged(IngestError):
    """Rows were not acknowledged within the time given; the client still holds them."""


class ClosedClient(IngestError):
    """A client or a connection is used after it was closed."""


class GateAway(IngestError):
    """A gate or a controller does not answer."""


class NoGate(IngestError):
    """No gate is there for a stream to go to."""


class Refused(IngestError):
    """A gate or a controller refuses a stream or a call, and would again."""


class StreamAhead(IngestError):
    """A gate holds rows under the sequence numbers that a client gives to new ones."""


class GateError(PenstockError):
    """A gate cannot do what it was asked."""


class BadGate(GateError):
    """A gate is described in a way that cannot work."""


class BadMessage(GateError):
    """A message to a gate cannot be read."""


class BadMetadata(GateError):
    """The metadata of a stream says something that cannot be."""


class WrongSchema(GateError):
    """Rows have another schema than their inlet."""


class SequenceGap(GateError):
    """Rows would leave a hole in their stream."""


class TooLarge(GateError):
    """A batch is larger than a gate takes."""


class TooMany(GateError):
    """There are more streams, pushes or reads than a gate takes."""


class RangeNotHeld(GateError):
    """A reader asks for rows that the gate does not have."""


class UnknownInlet(GateError):
    """Nothing was ever pushed to this inlet here."""


class DamagedLog(GateError):
    """A file of a gate's log is not what was written."""


class LogFull(GateError):
    """A gate cannot store more rows for the time being."""


class NotAllowed(GateError):
    """A token is missing, unknown or expired, or does not give this right."""


class BadToken(GateError):
    """A file of tokens cannot be read or used."""
