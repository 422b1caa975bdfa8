# ruff: noqa: N818 -- a name that says what is wrong needs no suffix
"""Every error of Penstock: each says what was given, what was expected and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self

__all__ = [
    "AggregateOverflow",
    "BadAdmission",
    "BadAggregate",
    "BadApply",
    "BadDuration",
    "BadExpression",
    "BadForecast",
    "BadGate",
    "BadJoin",
    "BadLimit",
    "BadLimits",
    "BadMap",
    "BadMessage",
    "BadMetadata",
    "BadName",
    "BadOption",
    "BadPath",
    "BadProcess",
    "BadPromise",
    "BadRecording",
    "BadRescale",
    "BadRouting",
    "BadRows",
    "BadSchema",
    "BadSink",
    "BadSource",
    "BadToken",
    "BadValue",
    "BadWindow",
    "BufferFull",
    "CheckpointError",
    "CheckpointInUse",
    "ClosedClient",
    "DamagedCheckpoint",
    "DamagedLog",
    "DamagedRows",
    "ForeignCheckpoint",
    "GateAway",
    "GateError",
    "IngestError",
    "LogEnded",
    "LogFull",
    "LostCheckpoint",
    "MachineFault",
    "MissingPackage",
    "MissingSegment",
    "NoCheckpoint",
    "NoGate",
    "NotAcknowledged",
    "NotAllowed",
    "PenstockError",
    "QueryError",
    "RangeNotHeld",
    "Refused",
    "RowsGone",
    "RunError",
    "SequenceGap",
    "SinkError",
    "StreamAhead",
    "Superseded",
    "TakenOver",
    "TooLarge",
    "TooMany",
    "TooManyErrors",
    "UnknownColumn",
    "UnknownEpoch",
    "UnknownForm",
    "UnknownFunction",
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
    """The query names a column that the stream or the result does not have."""

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
    """An expression or a statement does not parse, or is not allowed in this place."""


class UnknownFunction(BadExpression):
    """An expression calls a function that Spark does not have."""

    @classmethod
    def among(cls, name: str, known: Iterable[str]) -> Self:
        """The error for one name, with the nearest known names.

        >>> print(UnknownFunction.among("lenght", ["length", "left", "upper"]))
        no function lenght(); did you mean length()? A function of your own goes into map()
        """
        near = [f"{each}()" for each in get_close_matches(name.lower(), sorted(known), cutoff=0.7)]
        hint = f"did you mean {' or '.join(near)}?" if near else "the functions are those of Spark SQL."
        return cls(f"no function {name}(); {hint} A function of your own goes into map()")


class BadSchema(QueryError):
    """A schema cannot be read, or names something twice or something reserved."""


class BadSource(QueryError):
    """A source is declared in a way that cannot be read."""


class BadSink(QueryError):
    """A sink is declared in a way that cannot be written."""


class BadAggregate(QueryError):
    """An aggregate is called or defined in a way that cannot be computed."""


class BadApply(QueryError):
    """A function given to apply() is declared wrongly, or returns something that cannot be used."""


class BadJoin(QueryError):
    """A join is declared in a way that cannot be computed, or gets rows that it cannot take."""


class BadMap(QueryError):
    """A function given to map() does not return what was declared."""


class BadProcess(QueryError):
    """A function given to process() is declared wrongly, or returns something that cannot be used."""


class BadName(QueryError):
    """A name is not an identifier, is reserved, or is used twice."""


class UnknownStrategy(QueryError):
    """No strategy for cutting a query into stages has this name."""

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


class CheckpointInUse(CheckpointError):
    """Another run owns the checkpoint, or may own it."""


class LostCheckpoint(CheckpointError):
    """Another run has taken over the checkpoint of this one."""


class DamagedCheckpoint(CheckpointError):
    """A file of the checkpoint does not match its record."""


class MissingSegment(CheckpointError):
    """A segment that the manifest names does not exist any more."""


class NoCheckpoint(CheckpointError):
    """A folder is not a checkpoint."""


class UnknownEpoch(CheckpointError):
    """The checkpoint has no manifest of this epoch, or no longer has it."""


class UnknownStage(CheckpointError):
    """The query of the checkpoint has no stage with this number."""


class UnknownKey(CheckpointError):
    """The checkpoint holds no state for this key, or the value cannot be a key."""


class BadPath(PenstockError):
    """A path or URI names no filesystem that Penstock can use."""


class RunError(PenstockError):
    """A run failed."""


class BadOption(RunError):
    """A run option has the wrong type or is out of range."""


class BadValue(RunError):
    """An expression has no value for some tuple, such as a sum that is too large for its type."""


class MachineFault(RunError):
    """Memory, a disk, a network or time ran out under a function of the user; no row is to blame."""


class TooManyErrors(RunError):
    """Functions of the user raised for more rows of an epoch than may be set aside."""


class BadRescale(RunError):
    """A stage was asked to run on a number of channels that it cannot have."""


class BadLimits(RunError):
    """A limit of what policies may change that cannot be met or means nothing."""


class BadScaling(RunError):
    """A scaling policy, its settings or what it is told cannot be used."""


class BadRecording(CheckpointError):
    """A recording of a run that cannot be read, or that does not say what was decided."""


class AggregateOverflow(RunError):
    """An aggregate left the range of its result type."""


class SinkError(RunError):
    """A sink did not take the results of an epoch."""


class BadAdmission(PenstockError):
    """Streams, gates or a strategy of admission are given in a way that no decision can be made for."""


class BadRouting(PenstockError):
    """A router or a sketch got parameters that cannot work."""


class BadForecast(PenstockError):
    """A forecaster got settings, values or a state that cannot work."""


class MissingPackage(PenstockError):
    """A feature needs a package that is not installed."""


class IngestError(PenstockError):
    """Rows cannot enter through a gate."""


class BadLimit(IngestError):
    """A limit of a client has a value that cannot work."""


class BadRows(IngestError):
    """Rows do not fit the schema of their stream."""


class BadPromise(IngestError):
    """A promise is no time."""


class BufferFull(IngestError):
    """The buffer of a client had no room for the rows in time; it took none of them."""


class NotAcknowledged(IngestError):
    """Rows were not acknowledged in time; the client still holds them."""


class ClosedClient(IngestError):
    """A client or a connection was used after it was closed."""


class GateAway(IngestError):
    """A gate or a controller does not answer."""


class Superseded(IngestError):
    """Another controller has taken over, and the orders of this one count no more."""


class NoGate(IngestError):
    """No gate is available for a stream."""


class Refused(IngestError):
    """A gate or a controller refuses a stream or a call; a retry would be refused too."""


class DamagedRows(Refused):
    """A gate has rows that are not what was written any more."""


class RowsGone(IngestError):
    """Rows that a reader needs are on no gate any more, or a gate uses their numbers for other rows."""


class StreamAhead(IngestError):
    """A gate already holds rows under the sequence numbers that a client gives to new rows."""


class TakenOver(IngestError):
    """A newer client has taken over the stream of this one."""

    @classmethod
    def by(cls, newest: int, given: int, stream: str) -> Self:
        """The error for a producer that is older than the newest."""
        return cls(
            f"another client has taken over stream {stream!r} (producer {newest}, this one is {given}); what "
            "this one still holds is not stored: end one of the two, since a stream has one producer"
        )


class GateError(PenstockError):
    """A gate cannot do what was asked."""


class BadGate(GateError):
    """A gate is described in a way that cannot work."""


class BadMessage(GateError):
    """A message to a gate cannot be read."""


class BadMetadata(GateError):
    """The metadata of a stream contains an impossible value."""


class WrongSchema(GateError):
    """The schema of the rows differs from the schema of their inlet."""


class SequenceGap(GateError):
    """The rows would leave a gap in the sequence numbers of their stream."""


class TooLarge(GateError):
    """A batch is larger than a gate accepts."""


class TooMany(GateError):
    """There are more streams, pushes or reads than a gate accepts."""


class RangeNotHeld(GateError):
    """A reader asks for rows that the gate does not hold."""


class UnknownInlet(GateError):
    """No rows were ever pushed to this inlet of this gate."""


class DamagedLog(GateError):
    """A file of a gate's log differs from what was written."""


class LogEnded(GateError):
    """A gate can make nothing durable any more, and ends."""


class LogFull(GateError):
    """A gate cannot store more rows at the moment."""


class NotAllowed(GateError):
    """A token is missing, unknown or expired, or does not grant this right."""


class BadToken(GateError):
    """A file of tokens cannot be read or used."""
