"""The door through which a query reaches what runs it; the runtime installs itself from above."""

from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.query.query import Query

__all__ = ["Engine", "install", "installed"]


class Engine(Protocol):
    """What can run and explain queries."""

    def start(  # noqa: PLR0913 -- each is one documented option of Query.start
        self,
        query: "Query",
        *,
        sinks: tuple[Any, ...],
        checkpoint: Any,
        late: Any,
        rejects: Any,
        channels: Any,
        costs: Any,
        session: Any,
        name: str | None,
        strategy: str,
        merging: str,
        partitioning: str,
        resources: Any,
        most_moved: int,
        policy: Any,
    ) -> Any:
        """Run the query and give the handle of the run."""

    def explain(self, query: "Query", *, form: str, strategy: str, channels: int | None) -> str:
        """The plan of the query as text, as a Mermaid graph or as JSON."""


_installed: list[Engine] = []


def install(engine: Engine) -> None:
    """Let every query run on this engine from now on."""
    _installed[:] = [engine]


def installed() -> Engine:
    """The engine that was installed last."""
    if not _installed:
        raise PenstockError(
            "no engine is installed to run queries; import penstock instead of penstock.query"
        )
    return _installed[0]
