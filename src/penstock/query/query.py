"""A whole query: the relations that are delivered and the graph behind them."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.connect import ParquetSink, Sink
from penstock.control.controller import Mode
from penstock.control.limits import Limits
from penstock.errors import BadName, QueryError
from penstock.query.qos import QoS
from penstock.query.run_options import (
    ALPHA,
    KEPT_EPOCHS,
    MOST_ERRORS,
    MOST_MOVED,
    SIGMA,
    Merging,
    OnError,
    PartitioningName,
    RunOptions,
    ScalingName,
    Strategy,
    checked_sinks,
)
from penstock.routing import Resources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.query.relation import Relation
    from penstock.query.stream import Stream
    from penstock.runtime.run import Run

__all__ = ["Engine", "Node", "Query", "digest", "install", "installed", "outputs"]


@dataclass(frozen=True)
class Query:
    """Relations to deliver, each to its own sink; made by ``outputs`` or by starting a relation."""

    outputs: "tuple[Relation, ...]"

    def __post_init__(self) -> None:
        if not self.outputs:
            raise QueryError("a query needs at least one relation to deliver")
        self._check_names()

    @cached_property
    def relations(self) -> "tuple[Relation, ...]":
        """Every relation of the graph once, each after its inputs; equal relations are one."""
        found: dict[Relation, Relation] = {}

        def visit(relation: "Relation") -> None:
            if relation not in found:
                for each in relation.inputs:
                    visit(each)
                found[relation] = relation

        for output in self.outputs:
            visit(output)
        return tuple(found.values())

    @cached_property
    def streams(self) -> "tuple[Stream, ...]":
        """The streams that the query reads, in order of first use."""
        return tuple(each for each in self.relations if not each.inputs)  # type: ignore[misc]

    def start(  # noqa: PLR0913 -- each is one documented option
        self,
        *sinks: Sink,
        checkpoint: str | os.PathLike[str] | None = None,
        late: ParquetSink | None = None,
        rejects: ParquetSink | None = None,
        channels: int | tuple[int, int] | None = None,
        costs: Mapping[int, float] | None = None,
        session: "SparkSession | None" = None,
        name: str | None = None,
        strategy: Strategy = "subquery",
        merging: Merging = "transparent",
        partitioning: PartitioningName = "balanced",
        dealing: str | None = None,
        resources: Mapping[int, Resources | str] | None = None,
        alpha: float | tuple[float, float, float] = ALPHA,
        sigma: float = SIGMA,
        most_moved: int = MOST_MOVED,
        control: Mode = "on",
        limits: Limits | None = None,
        qos: QoS | None = None,
        disorder: float | None = None,
        trigger: str | timedelta | None = None,
        scaling: ScalingName | Mapping[str, Any] | None = None,
        executors: tuple[int, int] | None = None,
        policy: Callable[[Any], Iterable[Any]] | None = None,
        takeover: bool = False,
        from_epoch: int | None = None,
        keep_epochs: int = KEPT_EPOCHS,
        on_error: OnError = "fail",
        most_errors: int = MOST_ERRORS,
    ) -> "Run":
        """Run the query in the background and return the handle of the run, a ``ps.Run``.

        Every option is checked here, before anything starts.

        Args:
            sinks: One for each relation, in order; or none, if the results are for ``Run.results`` alone.
            checkpoint: Folder or URI of the state, from which a later run continues; by default a new
                temporary folder.
            late: Where late tuples go, ``ps.parquet(path)``; by default a folder of the checkpoint.
            rejects: Where tuples go that do not fit their schema; the default is as for ``late``.
            channels: A total of 1 to 1,024 channels, which the stages share in proportion to ``costs``; or
                the least and the most that each stage may have, such as ``(1, 8)``. By default every stage
                has one per core at first. Unless it is a total, the number follows the load.
            costs: Seconds per tuple of each stage, by the number of the stage, as measured by ``Run.costs``
                of an earlier run.
            session: The Spark session to run on; by default the active one, or a new one on all cores.
            name: The name of the run in Spark, in logs and in the transactions of a Delta table.
            strategy: How the query is cut into stages: by ``"subquery"``, ``"operator"`` or ``"query"``.
            merging: ``"transparent"``: event order decides, so the run waits for the slowest input.
                ``"best effort"``: the run does not wait; what a slower input brings too late is set aside.
            partitioning: How routers are made: ``"balanced"``, ``"uniform"``, ``"consistent"``, ``"scan"``,
                ``"redist"`` or ``"readj"``.
            dealing: By default partials of user-defined aggregates are formed where tuples are read.
                Otherwise how rows are dealt out to channels that form them. Without a key: ``"runs"`` of a
                mean pane, so that channels are even whatever the rates are, or whole panes
                ``"round robin"``. With a key: ``"two choices"``, to the less loaded of two channels. Results
                are the same.
            resources: How state, computation and communication grow with the frequency of a key, by the
                number of a stage, as letters such as ``"LQL"`` or as ``ps.Resources``, which has its own
                tolerances; by default the operator decides.
            alpha: The most load of a channel over the least that ``"scan"``, ``"redist"``, ``"readj"`` and a
                rescale by hand tolerate, above 1: one number, or three, of state, computation and
                communication. Control goes by what a move saves and costs.
            sigma: The part of that which a single key may use up that no table names, above 0, at most 1.
            most_moved: The approximate limit of bytes of a stage's state that one epoch moves in a rescale.
            control: ``"on"``: the run moves and splits hot keys by itself when that pays off. ``"observe"``:
                nothing changes by itself; ``Run.rulings`` and the recording say what would. ``"off"``: nobody
                decides but your own ``policy``; without one, keys are counted only for ``"scan"``,
                ``"redist"`` and ``"readj"``.
            limits: What holds back decisions of policies: ``ps.Limits(least_interval=…)`` and more.
            qos: What is asked of the results: ``ps.QoS(latency="5 seconds", disorder=10)``, or one of both. A
                latency is for live sources only; by default tuples are taken as they come, and at a steady
                load results are at most 1.5 seconds old.
            disorder: Short for ``qos=ps.QoS(disorder=…)``. Give results as channels finish, before their
                epoch is whole, with at most so many between two that are out of order: 0 is in order,
                ``math.inf`` as they come. Only for sinks that take parts of an epoch; others take an epoch
                in one step. By default all do.
            trigger: The time from the begin of an epoch to that of the next, such as ``"2 seconds"``, set by
                hand instead; ``"0 seconds"``: epochs run back to back.
            scaling: How the number of executors follows the load: ``"penstock"``, ``"autoscale"``, ``"qos"``,
                ``"incremental"``, ``"static"`` or ``"off"``. By default ``"penstock"`` for live sources on a
                cluster whose executors can be changed, and ``"off"`` in local mode. Or a dict with the
                settings of one, such as ``{"policy": "autoscale", "preset": "paper", "out_cooldown": 30}``.
            executors: The least and the most executors, such as ``(1, 8)``; by default 1 and as many as the
                session was made for.
            policy: A policy of your own, beside Penstock's and before them: called after each epoch with an
                ``Observation``, it returns the ``Rescale`` requests to follow. If a policy fails, the failure
                is logged and the run continues.
            takeover: Take the checkpoint from a run that has it; that run then fails. Without it, a
            checkpoint
                that another live run has is refused.
            from_epoch: Go back to this epoch, one of the last ``keep_epochs``; what came later is set aside
                in the checkpoint and dropped from the sinks.
            keep_epochs: How many of the last epochs the checkpoint keeps, 1 to 90.
            on_error: What happens if a function given to ``map`` or ``process`` raises. ``"fail"``: the run
                fails with an error that names function and row. ``"set aside"``: the row goes to the rejects
                with the reason, and the run goes on without it.
            most_errors: How many rows of an epoch may be set aside in this way, at most 1,000,000; with more
                the run fails.
        """
        options = RunOptions(
            checkpoint=checkpoint,
            late=late,
            rejects=rejects,
            channels=channels,
            costs=costs,
            session=session,
            name=name,
            strategy=strategy,
            merging=merging,
            partitioning=partitioning,
            dealing=dealing,
            resources=resources,
            alpha=alpha,
            sigma=sigma,
            most_moved=most_moved,
            control=control,
            limits=limits,
            qos=qos,
            disorder=disorder,
            trigger=trigger,
            scaling=scaling,
            executors=executors,
            policy=policy,
            takeover=takeover,
            from_epoch=from_epoch,
            keep_epochs=keep_epochs,
            on_error=on_error,
            most_errors=most_errors,
        )
        return installed().start(self, checked_sinks(sinks, len(self.outputs), options), options)

    def explain(self, form: str = "text", *, strategy: str = "subquery", channels: int | None = None) -> str:
        """The plan: as text, as a Mermaid graph or as JSON."""
        return installed().explain(self, form=form, strategy=strategy, channels=channels)

    def fingerprint(self) -> str:
        """A digest of everything that gives the state its meaning.

        Sources, delays, sinks and the steps after the last stateful operators can change between two
        runs over one checkpoint; everything before them cannot. A run compares the fingerprint of the
        rewritten query, so a later condition that moves below a stateful operator counts as well.
        """
        return digest(self.relations)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.outputs))
        return shown if len(self.outputs) == 1 else f"outputs({shown})"

    def _check_names(self) -> None:
        known: dict[str, Stream] = {}
        for each in self.streams:
            if known.setdefault(each.name.lower(), each) != each:
                raise BadName(f"two streams have the name {each.name!r}; declare it once and use it twice")


def outputs(*relations: "Relation") -> Query:
    """A query that delivers several relations, each to a sink of its own.

    >>> from penstock.query.stream import stream
    >>> reports = stream("reports", "time timestamp, speed double", time="time")
    >>> outputs(*reports.split("speed > 100"))
    outputs(reports.split(`speed` > 100)[0], reports.split(`speed` > 100)[1])
    """
    return Query(relations)


class Engine(Protocol):
    """The interface of an engine, which runs and explains queries."""

    def start(self, query: "Query", sinks: tuple[Sink, ...], options: RunOptions) -> "Run":
        """Run the query, each relation into the sink at its place, and return the handle of the run."""

    def explain(self, query: "Query", *, form: str, strategy: str, channels: int | None) -> str:
        """The plan of the query as text, as a Mermaid graph or as JSON."""


_installed: list[Engine] = []


def install(engine: Engine) -> None:
    """Make every query run on this engine from now on."""
    _installed[:] = [engine]


def installed() -> Engine:
    """The engine that was installed last, or Spark if none was."""
    if not _installed:
        # By name: the runtime package is above this one, and only starting and explaining need it.
        install(import_module("penstock.runtime").SparkEngine())
    return _installed[0]


# Part of every digest; increase it whenever the same query text comes to mean other state.
_VERSION: Final = 2


class Node(Protocol):
    """What a digest needs of a relation."""

    @property
    def inputs(self) -> "Sequence[Node]":
        """The relations that it is made from."""

    @property
    def stateful(self) -> bool:
        """Whether a stateful operator makes it."""

    def meaning(self) -> list[object]:
        """What gives its tuples their meaning, without its inputs, as plain values."""


def digest(relations: Sequence[Node]) -> str:
    """The hexadecimal SHA-256 of what relations mean, each after its inputs; equal in every process."""
    kept = _behind_state(relations)
    number = {relation: place for place, relation in enumerate(kept)}
    meaning = {
        "version": _VERSION,
        "relations": [[each.meaning(), [number[one] for one in each.inputs]] for each in kept],
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()


def _behind_state(relations: Sequence[Node]) -> list[Node]:
    """The relations on which state depends: streams, stateful relations and all that leads to these."""
    needed: set[Node] = {each for each in relations if not each.inputs}
    for relation in reversed(relations):
        if relation.stateful or relation in needed:
            needed |= {relation, *relation.inputs}
    return [each for each in relations if each in needed]
