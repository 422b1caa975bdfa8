"""A stage: what every channel of a subcluster does with a tuple, and what that costs it."""

from dataclasses import dataclass, field

from penstock_lab.errors import BadSimulation
from penstock_lab.simulate.handover import Handover
from penstock_lab.simulate.splits import Split

__all__ = ["SOURCE", "Links", "Stage", "Window"]

SOURCE = "source"


@dataclass(frozen=True)
class Links:
    """Seconds to route a tuple, to send a copy and to receive one, and the share that a connection takes.

    `connection` is the part of a processor that one end of a connection keeps busy, whether tuples flow or
    not: batches or dummy tuples that keep the frontier moving, buffers, context switches.
    """

    route: float = 0.0
    send: float = 0.0
    receive: float = 0.0
    connection: float = 0.0

    @classmethod
    def of(cls, handover: Handover, every: float) -> "Links":
        """Measured costs, where each connection carries one batch `every` this number of seconds.

        >>> Links.of(Handover(1e-6, 1e-6, 1e-6, send_batch=1e-5, receive_batch=3e-5), every=0.1).connection
        0.0002
        """
        mean = (handover.send_batch + handover.receive_batch) / 2
        return cls(handover.route, handover.send, handover.receive, mean / every)


@dataclass(frozen=True)
class Window:
    """What a tuple is compared with: the other side's tuples of the last seconds, or its last rows."""

    seconds: float = 0.0
    rows: float = 0.0

    def __post_init__(self) -> None:
        if (self.seconds > 0) == (self.rows > 0):
            raise BadSimulation(
                f"a window has {self.seconds} seconds and {self.rows} rows; give exactly one of the two"
            )

    def tuples(self, rate: float) -> float:
        """How many tuples of one side it holds at this rate of the side."""
        return self.rows or self.seconds * rate


@dataclass(frozen=True)
class Stage:
    """A pipeline of operators on the processors `hosts`, one channel on each.

    A tuple costs `work` seconds, and `compare` for every tuple of the other side's window that it meets;
    `selectivity` tuples come out for one that goes in. `inputs` names the stages that feed it.
    """

    name: str
    work: float
    split: Split
    hosts: tuple[int, ...]
    inputs: tuple[str, ...] = (SOURCE,)
    selectivity: float = 1.0
    window: Window | None = None
    compare: float = 0.0
    links: Links = field(default_factory=Links)

    def __post_init__(self) -> None:
        if len(set(self.hosts)) != len(self.hosts) or len(self.hosts) != self.split.channels:
            raise BadSimulation(
                f"stage {self.name!r} has {self.split.channels} channels on processors {self.hosts}; "
                "give each channel a processor of its own"
            )
