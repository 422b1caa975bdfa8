"""The executors of a running application: how many there are, what they did, and how to have more or fewer.

Standalone clusters, YARN and Kubernetes answer to the same two calls of Spark's context. They are made
between two epochs, so that no task is on an executor that goes; state lies in the checkpoint, so nothing
moves with it. In local mode the slots are those that the session was made with.

A new executor starts a JVM, and with its first task a process that loads Python and Penstock: together as
long as several epochs. So it gets a task of its own as soon as it is there, and epochs wait less for that.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext

from penstock.control.observation import Nodes
from penstock.errors import RunError

__all__ = ["Executors"]

_DYNAMIC = "spark.dynamicAllocation.enabled"
_STARTUPS = 8  # whose median counts
_PATIENCE = 120.0  # seconds after which executors that have not come are no longer waited for
_CORES = "spark.executor.cores"
_LOOK_S = 0.1

_log = logging.getLogger("penstock.run")


@dataclass
class Executors:
    """The executors of one application; the driver is not among them."""

    context: SparkContext
    clock: Callable[[], float] = time.time
    _wanted: int | None = field(default=None, init=False)
    _asked: float | None = field(default=None, init=False)
    _startups: list[float] = field(default_factory=list, init=False)
    _done: dict[str, float] = field(default_factory=dict, init=False)

    @property
    def why_fixed(self) -> str:
        """Why their number cannot be changed; empty if it can."""
        if self._scala.isLocal():
            return "in local mode the number of task slots is fixed"
        if self.context.getConf().get(_DYNAMIC, "false") == "true":
            return f"Spark itself changes the number of executors ({_DYNAMIC}=true)"
        return ""

    def count(self) -> int:
        """How many are registered and not about to go."""
        return len(self._ids())

    def expected(self) -> int:
        """How many there are, or as many as the session was made for if those have not come yet."""
        conf = self.context.getConf()
        given = int(conf.get("spark.executor.instances", "0") or 0)
        if not given and conf.get("spark.cores.max") and conf.get(_CORES):
            given = int(conf.get("spark.cores.max") or 0) // int(conf.get(_CORES) or 1)
        return max(self.count(), given, 1)

    def request(self, total: int) -> None:
        """Have so many from now on: new ones come when the cluster has them, the youngest ones go at once."""
        if self.why_fixed:
            raise RunError(f"{total} executors were asked for; {self.why_fixed}")
        ids = self._ids()
        java: Any = self.context._jvm  # noqa: SLF001 -- PySpark has no such calls of its own
        if total < len(ids):
            self._asked = None
            leaving = java.java.util.ArrayList()
            for each in ids[total:]:
                leaving.add(each)
            self._scala.killExecutors(java.PythonUtils.toSeq(leaving))
        self._scala.requestTotalExecutors(total, 0, java.PythonUtils.toScalaMap(java.java.util.HashMap()))
        self._wanted = total
        if total > len(ids):
            self._asked = self.clock()
            threading.Thread(
                target=self._warm, args=(self._asked, total, len(ids)), name="penstock-executors", daemon=True
            ).start()

    def observed(self) -> Nodes:
        """What there is to know after an epoch; task seconds are those since the last call."""
        found = self._summaries()
        active = [each for each in found if each[1]]
        before, self._done = self._done, {name: seconds for name, _, _, seconds in found}
        if self._wanted is None:
            self._wanted = len(active)
        if self._asked is not None and len(active) >= self._wanted:
            self._asked = None
        if self._asked is not None and self.clock() - self._asked > _PATIENCE:
            # The cluster has no more: what there is is what is wanted.
            self._asked, self._wanted = None, len(active)
        startups = sorted(self._startups)
        return Nodes(
            executors=len(active),
            starting=max(self._wanted - len(active), 0) if self._asked is not None else 0,
            cores=max((cores for _, _, cores, _ in active), default=1),
            busy=tuple(seconds - before.get(name, 0.0) for name, _, _, seconds in active),
            gone=sum(seconds - before.get(name, 0.0) for name, alive, _, seconds in found if not alive),
            startup=startups[len(startups) // 2] if startups else None,
        )

    def _warm(self, asked: float, total: int, there: int) -> None:
        """Let executors that have come load Python; how long it took from when they were asked for is learnt.

        Tasks of an epoch that wait come first, and load it as well; executors that are busy get none.
        """
        try:
            while self._wanted == total and there < total and self.clock() - asked < _PATIENCE:
                time.sleep(_LOOK_S)
                count = self.count()
                if count > there:
                    there = count
                    self.context.parallelize(range(total), total).foreachPartition(_nothing)
                    self._startups = [*self._startups, self.clock() - asked][-_STARTUPS:]
        except Exception:  # noqa: BLE001 -- the session may end at any time; nothing here may end a run
            _log.debug("executors that have come were not warmed up", exc_info=True)

    @property
    def _scala(self) -> Any:
        return self.context._jsc.sc()  # noqa: SLF001 -- as above

    def _ids(self) -> list[str]:
        """The ids of executors, the oldest first."""
        if self._scala.isLocal():
            return []
        backend = self._scala.schedulerBackend()
        known = filter(None, backend.getExecutorIds().mkString(",").split(","))
        # An executor that is asked to go is known until its process has ended.
        return sorted(filter(backend.isExecutorActive, known), key=_age)

    def _summaries(self) -> list[tuple[str, bool, int, float]]:
        """Id, whether it is there, cores and seconds of all its tasks, for every executor that ever was."""
        ids = set(self._ids())
        listed = self._scala.statusStore().executorList(False)
        found = []
        for place in range(listed.size()):
            each = listed.apply(place)
            if each.id() != "driver":
                found.append((each.id(), each.id() in ids, each.totalCores(), each.totalDuration() / 1000))
        return found


def _age(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def _nothing(rows: Iterable[Any]) -> None:
    """A task that does nothing."""
    for _ in rows:
        pass
