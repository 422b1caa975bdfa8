"""A whole query: the relations that are delivered and the graph behind them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.errors import BadName, BadSink, QueryError
from penstock.query.engine import installed
from penstock.query.fingerprint import digest

if TYPE_CHECKING:
    from penstock.query.relation import Relation
    from penstock.query.stream import Stream

__all__ = ["MOST_MOVED", "Query", "outputs"]

MOST_MOVED = 512 * 2**20
"""Bytes of a stage's state that an epoch moves at most, by default."""


@dataclass(frozen=True)
class Query:
    """Relations that are delivered, each to its own sink; made by ``outputs`` or by starting a relation."""

    outputs: "tuple[Relation, ...]"

    def __post_init__(self) -> None:
        if not self.outputs:
            raise QueryError("a query needs at least one relation to deliver")
        self._check_names()

    @cached_property
    def relations(self) -> "tuple[Relation, ...]":
        """Every relation of the graph once, each after its inputs; equal ones are one."""
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
        """The streams that it reads, in the order in which they are first met."""
        return tuple(each for each in self.relations if not each.inputs)  # type: ignore[misc]

    def start(  # noqa: PLR0913 -- each is one documented option
        self,
        *sinks: Any,
        checkpoint: Any = None,
        late: Any = None,
        rejects: Any = None,
        channels: Any = None,
        costs: Any = None,
        session: Any = None,
        name: str | None = None,
        strategy: str = "subquery",
        merging: str = "transparent",
        partitioning: str = "balanced",
        resources: Any = None,
        most_moved: int = MOST_MOVED,
        policy: Any = None,
    ) -> Any:
        """Run the query, the first relation into the first sink and so on, and give the handle of the run.

        ``channels`` are in all shared out to the stages in proportion to ``costs``, the seconds that each
        takes for a tuple, as ``Run.costs`` of an earlier run has measured them; by default every stage
        has one for each core. ``strategy`` cuts the query into stages by subquery, operator or query;
        ``merging`` is transparent (event order decides, waits for the slowest input) or best effort (does
        not wait: what a slower input brings too late is set aside).

        ``partitioning`` makes routers: balanced, uniform, consistent, scan, redist or readj. ``resources``
        overrides, by the number of a stage, how state, computation and communication grow with a key's
        frequency, as letters such as ``"LQL"``. At a rescale no epoch moves more than about ``most_moved``
        bytes of state of a stage. ``policy`` is asked after each epoch which stages to rescale.
        """
        if len(sinks) != len(self.outputs):
            raise BadSink(f"{len(self.outputs)} relations and {len(sinks)} sinks; give each relation its own")
        return installed().start(
            self,
            sinks=sinks,
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
            resources=resources,
            most_moved=most_moved,
            policy=policy,
        )

    def explain(self, form: str = "text", *, strategy: str = "subquery", channels: int | None = None) -> str:
        """The plan: as text, as a Mermaid graph or as JSON."""
        return installed().explain(self, form=form, strategy=strategy, channels=channels)

    def fingerprint(self) -> str:
        """A digest of all that gives the state its meaning.

        Sources, delays, sinks and what is done with the results of the last stateful operators can
        change between two runs over one checkpoint; everything before that cannot. A run compares the
        fingerprint of the query as it is rewritten, so a later condition that moves below a stateful operator
        counts as well.
        """
        return digest(self)

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
