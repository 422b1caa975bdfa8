"""The options of a run: each has a type, a default and a range, and is checked when given."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from penstock.checks import flag, one_of, path_text, printable, session_or_none, short, whole_number
from penstock.connect import ParquetSink, Sink
from penstock.connect.sinks.unkept import UnkeptSink
from penstock.control.controller import MODES, Mode
from penstock.control.limits import Limits
from penstock.control.rescale import MOST_CHANNELS
from penstock.control.scale import MOST_UNITS
from penstock.control.scaling.run_policy import RunScaling
from penstock.control.scaling.scaler import SCALING_LIMITS
from penstock.distribution.distribution import Forming
from penstock.errors import BadOption, BadRouting, BadScaling, BadSink
from penstock.expressions.durations import microseconds
from penstock.query.qos import QoS, duration, most_disorder
from penstock.routing import PARTITIONINGS, Resources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "ALPHA",
    "DEALINGS",
    "KEPT_EPOCHS",
    "MERGINGS",
    "MOST_CHANNELS",
    "MOST_ERRORS",
    "MOST_MOVED",
    "SCALINGS",
    "SIGMA",
    "STRATEGIES",
    "Merging",
    "OnError",
    "PartitioningName",
    "RunOptions",
    "ScalingName",
    "Strategy",
    "checked_sinks",
]

Strategy = Literal["subquery", "operator", "query"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)

Merging = Literal["transparent", "best effort"]
MERGINGS: Final[tuple[Merging, ...]] = get_args(Merging)

DEALINGS: Final = tuple(each.dealing for each in Forming.known.values() if each.dealing)

OnError = Literal["fail", "set aside"]
ON_ERROR: Final[tuple[OnError, ...]] = get_args(OnError)

ScalingName = Literal["penstock", "autoscale", "qos", "incremental", "static", "off"]
SCALINGS: Final[tuple[ScalingName, ...]] = get_args(ScalingName)

PartitioningName = Literal["balanced", "uniform", "consistent", "scan", "redist", "readj"]

MOST_MOVED: Final = 512 * 2**20
"""The default of the most bytes of a stage's state that an epoch moves."""

ALPHA: Final = 1.2
"""The default of the most load of a channel over the least that is tolerated."""

SIGMA: Final = 0.1
"""The default of the part of that which a key may use up that no table names."""

KEPT_EPOCHS: Final = 3
"""The default of the number of last epochs that a checkpoint keeps."""

MOST_ERRORS: Final = 1000
"""The default of the most rows of an epoch that are set aside because a function raises."""

# Spark keeps its offsets of the last 100 epochs.
_MOST_EPOCHS = 90
_MOST_REFUSED = 1_000_000  # a task holds the rows that it refuses in memory
_MOST_BYTES = 2**63 - 1
_MOST_STAGES = 10_000
_LONGEST_TRIGGER = 86_400_000_000  # a day, in microseconds
_MOST_COST = 1e9  # seconds for one tuple; a larger value would overflow when loads are added up


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The checked options of `start`; the docstring of `Query.start` explains each.

    >>> RunOptions(channels=2.5)
    Traceback (most recent call last):
        ...
    penstock.errors.BadOption: channels=2.5; give a whole number, from 1 to 1,024, or a range as (1, 8)
    """

    checkpoint: str | os.PathLike[str] | None = None
    late: ParquetSink | None = None
    rejects: ParquetSink | None = None
    channels: int | tuple[int, int] | None = None
    costs: Mapping[int, float] | None = None
    session: "SparkSession | None" = None
    name: str | None = None
    strategy: Strategy = "subquery"
    merging: Merging = "transparent"
    partitioning: PartitioningName = "balanced"
    dealing: str | None = None
    resources: Mapping[int, Resources | str] | None = None
    alpha: float | tuple[float, float, float] = ALPHA
    sigma: float = SIGMA
    most_moved: int = MOST_MOVED
    control: Mode = "on"
    limits: Limits | None = None
    qos: QoS | None = None
    disorder: float | None = None
    trigger: str | timedelta | None = None
    scaling: ScalingName | Mapping[str, Any] | None = None
    executors: tuple[int, int] | None = None
    policy: Callable[[Any], Iterable[Any]] | None = None
    takeover: bool = False
    from_epoch: int | None = None
    keep_epochs: int = KEPT_EPOCHS
    on_error: OnError = "fail"
    most_errors: int = MOST_ERRORS

    def __post_init__(self) -> None:
        """Check every option and keep plain values: an int for a numpy integer, a text for a path."""
        if self.checkpoint is not None:
            self._set("checkpoint", path_text(self.checkpoint, BadOption, name="checkpoint"))
        _check_aside("late", self.late)
        _check_aside("rejects", self.rejects)
        if self.channels is not None:
            self._set("channels", _channels(self.channels))
        if self.costs is not None:
            self._set("costs", _by_stage("costs", self.costs, _cost))
        session_or_none("session", self.session, BadOption)
        if self.name is not None:
            printable("name", self.name, BadOption)
        one_of("strategy", self.strategy, STRATEGIES, BadOption)
        one_of("merging", self.merging, MERGINGS, BadOption)
        one_of("partitioning", self.partitioning, PARTITIONINGS, BadOption)
        if self.dealing is not None:
            one_of("dealing", self.dealing, DEALINGS, BadOption)
        if self.resources is not None:
            self._set("resources", _by_stage("resources", self.resources, _resources))
        hint = ": the bytes of state that an epoch may move"
        self._set(
            "most_moved", whole_number("most_moved", self.most_moved, 1, _MOST_BYTES, BadOption, hint=hint)
        )
        self._check_control()
        self._check_pace()
        one_of("on_error", self.on_error, ON_ERROR, BadOption)
        hint = ": the rows of an epoch that may be set aside because a function raises"
        self._set(
            "most_errors",
            whole_number("most_errors", self.most_errors, 1, _MOST_REFUSED, BadOption, hint=hint),
        )
        self._check_checkpoint()

    @property
    def tolerances(self) -> tuple[float, float, float]:
        """The tolerated imbalance of state, computation and communication."""
        return (self.alpha,) * 3 if isinstance(self.alpha, float) else self.alpha

    def _check_control(self) -> None:
        self._set("alpha", _alpha(self.alpha))
        self._set("sigma", _sigma(self.sigma))
        one_of("control", self.control, MODES, BadOption)
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise BadOption(
                f"limits={short(self.limits)}; give ps.Limits(), such as ps.Limits(least_interval=60)"
            )
        policy: Any = self.policy
        whole = hasattr(policy, "observe") and hasattr(policy, "decide")
        if policy is not None and not callable(policy) and not whole:
            raise BadOption(
                f"policy={short(policy)}; give a function from an Observation to Rescales, or an "
                "object with observe and decide"
            )

    def _check_pace(self) -> None:
        if self.qos is not None and not isinstance(self.qos, QoS):
            raise BadOption(f"qos={short(self.qos)}; give ps.QoS(latency=…), such as ps.QoS(latency='5 s')")
        if self.disorder is not None:
            most_disorder(self.disorder)
        if self.qos is not None and self.qos.disorder is not None:
            if self.disorder not in {None, self.qos.disorder}:
                raise BadOption(
                    f"disorder={self.disorder} and qos={self.qos}; both say the same, so give one of them"
                )
            self._set("disorder", self.qos.disorder)
        if self.trigger is not None:
            duration("trigger", self.trigger, 0, _LONGEST_TRIGGER)
        if self.scaling is not None:
            self._check_scaling()
        if self.executors is not None:
            self._set("executors", _executors(self.executors))

    def _check_scaling(self) -> None:
        given: object = self.scaling
        if isinstance(given, Mapping):
            one_of("scaling: policy", given.get("policy", "penstock"), SCALINGS, BadOption)
        else:
            one_of("scaling", given, SCALINGS, BadOption)
        if self.scaling_name == "off":
            return
        try:
            RunScaling(**self.scaling_policy(1, MOST_UNITS))
        except (BadScaling, TypeError, ValueError) as error:
            raise BadOption(
                f"scaling={short(given)}: {error}; give the name of a policy, or a dict of 'policy' and its "
                "settings"
            ) from error

    @property
    def scaling_name(self) -> str:
        """The scaling policy, by its name."""
        given = self.scaling
        return str(given.get("policy", "penstock")) if isinstance(given, Mapping) else given or "penstock"

    def scaling_policy(self, least: int, most: int) -> dict[str, Any]:
        """The settings of `RunScaling`, as plain values; executors stay between the given numbers."""
        name = self.scaling_name
        given = dict(self.scaling) if isinstance(self.scaling, Mapping) else {}
        given.pop("policy", None)
        ticks: dict[str, Any] = {key: given.pop(key) for key in ("tick", "pause") if key in given}
        limits = {key: given.pop(key) for key in SCALING_LIMITS if key in given}
        if name in {"penstock", "qos"} and self.latency_seconds is not None:
            given = {"bound": self.latency_seconds, **given}
        return {"name": name, "limits": {"least": least, "most": most, **limits}, "settings": given, **ticks}

    @property
    def latency_seconds(self) -> float | None:
        """The bound of the latency, if one was given."""
        bound = None if self.qos is None else self.qos.bound
        return None if bound is None else bound / 1e6

    @property
    def trigger_seconds(self) -> float | None:
        """The time between two epochs, if it was set."""
        return None if self.trigger is None else microseconds(self.trigger) / 1e6

    def _check_checkpoint(self) -> None:
        flag("takeover", self.takeover, BadOption)
        hint = ": an epoch that the checkpoint keeps"
        if self.from_epoch is not None:
            self._set(
                "from_epoch", whole_number("from_epoch", self.from_epoch, 0, 2**62, BadOption, hint=hint)
            )
        if self.from_epoch is not None and self.takeover:
            raise BadOption(
                "from_epoch and takeover=True together; give one of them: stop the run that has the "
                "checkpoint, then go back"
            )
        most = _MOST_EPOCHS
        self._set("keep_epochs", whole_number("keep_epochs", self.keep_epochs, 1, most, BadOption))

    def check_stages(self, stages: int) -> None:
        """Check that costs and resources name stages of the query."""
        for option, given in (("costs", self.costs), ("resources", self.resources)):
            unknown = [stage for stage in given or () if stage >= stages]
            if unknown:
                known = f"0 to {stages - 1}" if stages else "none"
                raise BadOption(
                    f"{option} has stage {unknown[0]}; this query has the stages {known}, see explain()"
                )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def checked_sinks(sinks: tuple[object, ...], outputs: int, options: RunOptions) -> tuple[Sink, ...]:
    """One sink for each output, or none; no two of them, or a set-aside output, write to the same place."""
    if not sinks:
        return (UnkeptSink(),) * outputs
    if len(sinks) != outputs:
        raise BadSink(
            f"{outputs} relations and {len(sinks)} sinks; give each relation its own, or none at all to read "
            "results by Run.results()"
        )
    found = []
    for sink in sinks:
        if not isinstance(sink, Sink):
            raise BadSink(
                f"sink is {type(sink).__name__}; give ps.parquet(), ps.delta(), ps.memory(), ps.console(), "
                "ps.each(), or an object of your own subclass of ps.Sink"
            )
        found.append(sink)
    places = [each.exclusive for each in (*found, options.late, options.rejects) if each is not None]
    taken = [place for place in places if place is not None]
    twice = [place for number, place in enumerate(taken) if place in taken[:number]]
    if twice:
        raise BadSink(
            f"two outputs write to {twice[0]}; give each its own, or their files replace each other"
        )
    return tuple(found)


def _check_aside(option: str, given: object) -> None:
    if given is not None and not isinstance(given, ParquetSink):
        raise BadSink(
            f"{option}={short(given)}; tuples are set aside as Parquet files: give ps.parquet(path), or None "
            "for a folder of the checkpoint"
        )


def _by_stage(option: str, given: object, value: Callable[[str, object], Any]) -> dict[int, Any]:
    if not isinstance(given, Mapping):
        raise BadOption(f"{option}={short(given)}; give a dict by the number of a stage, such as {{0: …}}")
    found: dict[int, Any] = {}
    for stage, each in given.items():
        number = whole_number(f"{option}: stage", stage, 0, _MOST_STAGES, BadOption, hint=", see explain()")
        found[number] = value(f"{option} of stage {number}", each)
    return found


def _channels(given: object) -> int | tuple[int, int]:
    if isinstance(given, list | tuple) and len(given) == 2:
        least = whole_number("channels: the least", given[0], 1, MOST_CHANNELS, BadOption)
        return least, whole_number("channels: the most", given[1], least, MOST_CHANNELS, BadOption)
    hint = ", or a range as (1, 8)"
    return whole_number("channels", given, 1, MOST_CHANNELS, BadOption, hint=hint)


def _executors(given: object) -> tuple[int, int]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise BadOption(f"executors={short(given)}; give the least and the most, such as (1, 8)")
    least = whole_number("executors: the least", given[0], 1, MOST_UNITS, BadOption)
    return least, whole_number("executors: the most", given[1], least, MOST_UNITS, BadOption)


def _cost(name: str, given: object) -> float:
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not number or not isfinite(given) or not 0 <= given <= _MOST_COST:  # type: ignore[arg-type, operator]
        raise BadOption(f"{name} are {short(given)}; give seconds per tuple, from 0 to {_MOST_COST:,.0f}")
    return float(given)  # type: ignore[arg-type]


def _alpha(given: object) -> float | tuple[float, ...]:
    """One ratio, or one each for state, computation and communication."""
    several = isinstance(given, list | tuple)
    found = [_ratio(each) for each in (given if several else [given])]  # type: ignore[attr-defined]
    if None in found or (several and len(found) != 3):
        raise BadOption(
            f"alpha={short(given)}; give the most load of a channel over the least that is tolerated, above "
            "1 such as 1.2, or three such numbers: of state, computation and communication"
        )
    ratios = tuple(each for each in found if each is not None)
    return ratios if several else ratios[0]


def _ratio(given: object) -> float | None:
    number = isinstance(given, Real) and not isinstance(given, bool)
    return float(given) if number and isfinite(given) and given > 1 else None  # type: ignore[arg-type, operator]


def _sigma(given: object) -> float:
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not number or not 0 < given <= 1:  # type: ignore[operator]
        raise BadOption(f"sigma={short(given)}; give a fraction above 0 and at most 1")
    return float(given)  # type: ignore[arg-type]


def _resources(name: str, given: object) -> Resources:
    if isinstance(given, Resources):
        return given
    try:
        if isinstance(given, str):
            return Resources.of(given)
    except BadRouting as error:
        raise BadOption(f"{name}: {error}") from error
    raise BadOption(
        f"{name} are {short(given)}; give three letters of C, L and Q such as 'LLL', or Resources"
    )
