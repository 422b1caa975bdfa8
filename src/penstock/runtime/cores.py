"""How many cores a process may use, and all executors of an epoch together: by affinity and by cgroup."""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.cores import cores, host_cores

__all__ = ["NOWHERE", "Node", "here", "usable_cores"]


@dataclass(frozen=True)
class Node:
    """A worker process's executor: its host with so many cores, and how many of them it may use."""

    name: str = ""
    host: str = ""
    host_cores: int = 1
    cores: float = 1.0


NOWHERE = Node()


@cache
def here() -> Node:
    """The executor of this worker: a daemon has forked the worker, and the executor started the daemon."""
    process = os.getppid()
    with suppress(OSError, ValueError):
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    host = socket.gethostname()
    return Node(f"{host}:{process}", host, host_cores(), cores())


def usable_cores(nodes: Iterable[Node], slots: int) -> float:
    """The cores behind the task slots of all these executors, which share them equally.

    >>> usable_cores([Node("a:1", "a", 2, 2.0), Node("a:2", "a", 2, 2.0)], slots=8)
    2.0
    >>> round(usable_cores([Node(f"a:{each}", "a", 2, 0.2) for each in range(8)], slots=8), 1)
    1.6
    """
    known = set(nodes)
    each = max(slots / max(len(known), 1), 1.0)
    hosts: dict[str, tuple[int, float]] = {}
    for node in known:
        _, sum_ = hosts.get(node.host, (0, 0.0))
        hosts[node.host] = node.host_cores, sum_ + min(node.cores, each)
    return sum(min(float(cores), sum_) for cores, sum_ in hosts.values()) or 1.0
