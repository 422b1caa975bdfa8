"""A controller on paper: a registry in memory, a steering, and what gates would tell; time is given."""

from penstock.control.admission import AdmissionSetup
from penstock.ingest.directory.fleet import Fleet
from penstock.ingest.directory.measuring import Look
from penstock.ingest.directory.registry import StreamRegistry
from penstock.ingest.directory.steering import Steering
from penstock.ingest.wire.protocol import GateStatistics


class PaperNodes:
    """Nodes whose gates run as soon as they are started, and end as soon as they are stopped."""

    def __init__(self, *gates, least=0, shares=None):
        self.least, self._gates, self.running, self.cleared = least, gates, set(), []
        self._shares = shares or {}

    def gates(self):
        return self._gates

    def share(self, gate):
        return self._shares.get(gate, 1.0)

    def runs(self, gate):
        return gate in self.running

    def start(self, gate):
        self.running.add(gate)

    def stop(self, gate):
        self.running.discard(gate)

    def clear(self, gate):
        self.cleared.append(gate)

    def close(self):
        self.running.clear()


def told(rows=0, *, next_=None, waits=0, kept=0, batches=1, size=100, oldest=0.0, metadata=None, here=True):
    """What a gate tells of a stream."""
    said = {
        "rows": rows,
        "batches": batches,
        "bytes": size,
        "next": rows if next_ is None else next_,
        "client_rows": waits,
        "kept_rows": kept,
        "oldest_seconds": oldest,
        "connected": here,
    }
    return said if metadata is None else {**said, "metadata": metadata}


def look(gate="a:1", life="1", pending=0, seconds=1.0, cpu=0.0, **streams):
    """The statistics of a gate; the names of streams are those of inlet r."""
    named = {f"r/{name}": each for name, each in streams.items()}
    counts = {name: sum(each[name] for each in streams.values()) for name in ("rows", "batches", "bytes")}
    return GateStatistics(gate, seconds, counts, 0, 0.0, pending, 0, named, life=life, cpu_seconds=cpu)


def at(now, *told):
    """Looks at gates by address, all at one time."""
    return {each.gate: Look(now, each) for each in told}


class PaperController:
    """A steering over a registry, with gates that register at once."""

    def __init__(self, *gates, capacity=100.0, strategy="ard", nodes=None, mode="on", **more):
        self.registry = StreamRegistry(None, 1000.0, 0.0)
        self.fleet = Fleet(self.registry, nodes)
        setup = AdmissionSetup(capacity, strategy, more.pop("period", 10.0), mode=mode, **more)
        self.steering = Steering(self.registry, self.fleet, setup)
        for gate in gates:
            self.registry.register(gate, {}, 0.0)

    def where(self, now, **streams):
        asked = {f"r/{name}": metadata for name, metadata in streams.items()}
        return self.registry.where(asked, now, self.steering.admit)

    def period(self, now, *looks):
        return self.steering.period(at(now, *looks), now)

    def homes(self):
        return {each.stream.removeprefix("r/"): each.gate for each in self.registry.streams()}
