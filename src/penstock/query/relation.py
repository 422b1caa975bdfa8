"""Relations: the nodes of a query graph, from streams through operators to what is delivered."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.connect import ParquetSink, Sink
from penstock.control.controller import Mode
from penstock.control.limits import Limits
from penstock.expressions.schema import Schema
from penstock.operators import (
    ByWindowVerbs,
    DeduplicateVerbs,
    Duration,
    JoinVerbs,
    MapVerbs,
    Named,
    Operator,
    ProcessVerbs,
    SessionVerbs,
    StepVerbs,
    TotalsVerbs,
    WindowVerbs,
    group_keys,
    shown_keys,
)
from penstock.query.qos import QoS
from penstock.query.query import Query
from penstock.query.run_options import (
    ALPHA,
    KEPT_EPOCHS,
    MOST_ERRORS,
    MOST_MOVED,
    SIGMA,
    Merging,
    OnError,
    PartitioningName,
    ScalingName,
    Strategy,
)
from penstock.routing import Resources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.run import Run

__all__ = ["Derived", "Duration", "Grouped", "Relation", "derived"]


class Relation(
    StepVerbs["Relation", "Derived"],
    MapVerbs["Relation", "Derived"],
    JoinVerbs["Relation", "Derived"],
    WindowVerbs["Relation", "Derived"],
    SessionVerbs["Relation", "Derived"],
    TotalsVerbs["Relation", "Derived"],
    ByWindowVerbs["Relation", "Derived"],
    DeduplicateVerbs["Relation", "Derived"],
):
    """Tuples with a schema and an event time; immutable, so each method returns a new relation.

    ``schema`` holds the visible columns. The event time stays with the tuples even if a select leaves its
    column out, since windows, joins and frontiers need it. ``pinned`` columns stay visible and come first
    in every select: the bounds of windows, the time of a join.
    """

    @property
    def order(self) -> tuple[str, ...]:
        """The columns that order the results of an epoch at delivery.

        Stateful operators pin the time of their results; tuples of a stream stay in the source's order.
        """
        return (self.time,) if self.time in self.pinned else self.pinned[:1]

    @property
    def inputs(self) -> "tuple[Relation, ...]":
        """The relations that it is made from."""
        return ()

    def derive(self, operator: Operator, *others: "Relation") -> "Derived":
        """The relation that an operator makes from this one and the others."""
        return derived(operator, (self, *others))

    def group_by(self, /, *names: str, **expressions: str) -> "Grouped":
        """Aggregate for each value of these columns and expressions."""
        return Grouped(self, group_keys(names, expressions, self.schema))

    def start(  # noqa: PLR0913 -- the options of Query.start
        self,
        sink: Sink | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
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
        """Deliver the tuples to a sink and return the handle of the run, a ``ps.Run``.

        Without a sink the results are for ``Run.results`` alone, and the run waits until it is called.
        ``Query.start`` explains each option; for several sinks see ``outputs``.
        """
        return Query((self,)).start(
            *(() if sink is None else (sink,)),
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

    def explain(
        self, form: str = "text", *, strategy: Strategy = "subquery", channels: int | None = None
    ) -> str:
        """The plan: as text, as a Mermaid graph or as JSON."""
        return Query((self,)).explain(form, strategy=strategy, channels=channels)

    def fingerprint(self) -> str:
        """A digest of everything that gives the state its meaning; see ``Query.fingerprint``."""
        return Query((self,)).fingerprint()


@dataclass(frozen=True, repr=False)
class Derived(Relation):
    """A relation made by an operator from others; `derived` makes it."""

    operator: Operator
    _inputs: tuple[Relation, ...]
    schema: Schema
    time: str
    _time_type: str
    _pinned: tuple[str, ...] = ()

    @property
    def time_type(self) -> str:
        """The type of the event time."""
        return self._time_type

    @property
    def pinned(self) -> tuple[str, ...]:
        """The columns that every select keeps."""
        return self._pinned

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """The relations that it is made from."""
        return self._inputs

    @property
    def label(self) -> str:
        """The operator that made it."""
        return str(self.operator)

    @property
    def stateful(self) -> bool:
        """Whether its operator keeps state."""
        return self.operator.stateful

    def meaning(self) -> list[object]:
        """The meaning of its operator."""
        return self.operator.meaning()

    @cached_property
    def _text(self) -> str:
        first, *others = self._inputs
        shown = str(self.operator)
        if others:
            name, _, rest = shown.partition("(")
            inside = ", ".join(map(repr, others))
            shown = f"{name}({inside}; {rest}" if rest else f"{name}({inside})"
        return f"{first!r}.{shown}"

    @cached_property
    def _hash(self) -> int:
        # Cached, since in a graph of diamonds the number of paths is exponential in the depth.
        return hash((self.operator, self._inputs))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self._text


def derived(operator: Operator, inputs: Sequence[Relation]) -> Derived:
    """The relation that an operator makes of its inputs; these determine everything else of it."""
    given = tuple(inputs)
    if operator.stateful and not operator.passing:
        _check_final(given)
    return Derived(
        operator,
        given,
        operator.schema(given),
        operator.event_time(given),
        given[0].time_type,
        operator.pinned(given),
    )


def _check_final(inputs: Sequence[Relation]) -> None:
    """Refuse inputs of a stateful operator whose tuples have no frontier to wait for.

    An operator that only passes tuples on waits for nothing, and neither it nor a step makes them final.
    """
    ahead, seen = list(inputs), set(inputs)
    while ahead:
        relation = ahead.pop()
        if not isinstance(relation, Derived):
            continue
        operator = relation.operator
        why = operator.why_last() if operator.stateful else None
        if why is not None:
            raise operator.refused(why)
        if not operator.stateful or operator.passing:
            ahead += [each for each in relation.inputs if each not in seen]
            seen.update(relation.inputs)


@dataclass(frozen=True)
class Grouped(
    WindowVerbs[Relation, Derived],
    SessionVerbs[Relation, Derived],
    TotalsVerbs[Relation, Derived],
    ProcessVerbs[Relation, Derived],
):
    """A relation with keys, before its window, its aggregates or its function is given."""

    relation: Relation
    keys: Named

    def __repr__(self) -> str:
        return f"{self.relation!r}{shown_keys(self.keys)}"
