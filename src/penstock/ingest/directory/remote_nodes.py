"""Gates on other hosts: on each an agent, `penstock node`, that a command such as ssh runs.

The command of a node stays open as long as the controller runs and is run again when it ends. Gates survive
both. While a node does not answer, nobody knows which of its gates run: they then count as running, so that
nothing of them is started twice or deleted.
"""

import json
import logging
import os
import shlex
import subprocess
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from penstock import threads
from penstock.errors import BadAdmission
from penstock.ingest.security.access import TOKEN_VARIABLE
from penstock.ingest.wire.flight import Address

__all__ = ["NodeSpec", "RemoteNodes", "read_nodes"]

_LOGGER = logging.getLogger("penstock.controller")
_AGAIN_S: Final = 2.0
_SILENT_S: Final = 10.0
"""An agent tells every few seconds which gates run; without a word for so long, nobody knows."""


@dataclass(frozen=True)
class NodeSpec:
    """A host: how `penstock node` is run there, where its gates listen, and how much each of them takes.

    `capacity` is what each of its gates can do, as a multiple of a usual one. Gates get consecutive ports.
    """

    name: str
    command: str
    address: str
    folder: str
    gates: int = 1
    capacity: float = 1.0
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or not shlex.split(self.command):
            raise BadAdmission(
                f"node {self.name!r} has the command {self.command!r}; give one that runs `penstock node` "
                "there, such as 'ssh -o BatchMode=yes HOST penstock node'"
            )
        if self.gates < 1 or not 0 < self.capacity < float("inf"):
            raise BadAdmission(
                f"node {self.name!r} has gates={self.gates} and capacity={self.capacity}; give 1 or more "
                "gates and a capacity above 0"
            )

    def addresses(self) -> list[str]:
        """The addresses of its gates."""
        first = Address.parse(self.address)
        return [str(Address(first.host, first.port + number)) for number in range(self.gates)]


def read_nodes(path: Path) -> list[NodeSpec]:
    """The nodes of a TOML file with a table `[[node]]` for each."""
    try:
        said = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadAdmission(
            f"the nodes in {path} cannot be read ({error}); give a TOML file with [[node]] tables"
        ) from None
    found = said.get("node")
    if not isinstance(found, list) or not found or set(said) != {"node"}:
        raise BadAdmission(f"{path} has {', '.join(said) or 'nothing'}; give a [[node]] table for each host")
    nodes = [_node(path, each) for each in found]
    gates = [gate for node in nodes for gate in node.addresses()]
    twice = sorted({each for each in gates if gates.count(each) > 1})
    if twice:
        raise BadAdmission(f"{path} gives {twice[0]} to two gates; give each an address of its own")
    return nodes


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "name": (str,),
    "command": (str,),
    "address": (str,),
    "folder": (str,),
    "gates": (int,),
    "capacity": (int, float),
    "options": (list,),
}


def _node(path: Path, given: Mapping[str, Any]) -> NodeSpec:
    known = [each.name for each in fields(NodeSpec)]
    for name, value in given.items():
        if name not in known or not isinstance(value, _KINDS[name]) or isinstance(value, bool):
            raise BadAdmission(
                f"{path}: a node has {name} = {value!r}; the keys are {', '.join(known)}, the first four are "
                "texts, then come two numbers and a list of texts"
            )
    missing = [name for name in known[:4] if name not in given]
    if missing:
        raise BadAdmission(f"{path}: node {given.get('name', '')!r} has no {missing[0]}; give it")
    return NodeSpec(**{**given, "options": tuple(map(str, given.get("options", ())))})


class RemoteNodes:
    """The gates of some hosts, started one host after the other in turn, from `least` to `most` in all.

    They survive the end of their controller, also in order: another one may go on with them.
    """

    def __init__(
        self,
        nodes: Sequence[NodeSpec],
        controller: str,
        *,
        least: int = 1,
        most: int | None = None,
        term: int = 0,
    ) -> None:
        in_turn = zip_longest(*([(gate, node) for gate in node.addresses()] for node in nodes))
        every: list[tuple[str, NodeSpec]] = [each for turn in in_turn for each in turn if each][:most]
        if not 0 <= least <= len(every):
            raise BadAdmission(f"{least} gates always run, but the nodes have {len(every)}; give fewer")
        self.least = least
        self._nodes: dict[str, NodeSpec] = dict(every)
        self._agents = {node.name: _Agent(node, controller, term) for node in nodes}

    def gates(self) -> Sequence[str]:
        """One of each node after the other."""
        return tuple(self._nodes)

    def share(self, gate: str) -> float:
        """What the node gives."""
        return float(self._nodes[gate].capacity)

    def runs(self, gate: str) -> bool:
        """Whether its process lives; True while its node does not answer."""
        known = self._agent(gate).running()
        return known is None or gate in known

    def start(self, gate: str) -> None:
        """Begin to start it; an order that does not reach the node is given again by the fleet."""
        self._agent(gate).start(gate)

    def stop(self, gate: str) -> None:
        """Begin to stop it."""
        self._agent(gate).order({"stop": gate})

    def clear(self, gate: str) -> None:
        """Delete its folder."""
        self._agent(gate).order({"clear": gate})

    def close(self) -> None:
        """Let the agents go; the gates stay."""
        for each in self._agents.values():
            each.close()

    def _agent(self, gate: str) -> "_Agent":
        return self._agents[self._nodes[gate].name]


class _Agent:
    """The open command of one node, in a thread of its own."""

    def __init__(self, node: NodeSpec, controller: str, term: int) -> None:
        self._node, self._controller, self._term = node, controller, term
        self._process: subprocess.Popen[str] | None = None
        self._running: frozenset[str] = frozenset()
        self._heard = 0.0
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._thread = threads.service(f"penstock-node-{node.name}", self._run, _LOGGER)
        self._thread.start()

    def running(self) -> frozenset[str] | None:
        """The gates that run there; None if nobody knows."""
        return self._running if self._heard and time.monotonic() - self._heard < _SILENT_S else None

    def start(self, gate: str) -> None:
        """Have a gate started that registers with the controller."""
        self.order({"start": gate, "options": ["--controller", self._controller, *self._node.options]})

    def order(self, what: Mapping[str, Any]) -> None:
        """Send an order, if the node is there."""
        with self._lock:
            self._send(what)

    def _send(self, what: Mapping[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()
        except OSError as error:
            _LOGGER.warning("node %s did not take an order: %s", self._node.name, error)

    def close(self) -> None:
        """End the command."""
        self._ending.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.terminate()
        self._thread.join()

    def _run(self) -> None:
        warned = False
        while not self._ending.is_set():
            why = self._talk()
            self._heard = 0.0
            if self._ending.is_set():
                return
            if not warned:
                _LOGGER.warning(
                    "node %s has ended its command %r (%s); it is run again every %g s, and its gates count "
                    "as running meanwhile",
                    self._node.name,
                    self._node.command,
                    why,
                    _AGAIN_S,
                )
            warned = not why.startswith("it was there")
            self._ending.wait(_AGAIN_S)

    def _talk(self) -> str:
        """Run the command until it ends; why it did."""
        try:
            process = subprocess.Popen(  # noqa: S603 -- the operator's own command
                shlex.split(self._node.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            return str(error)
        assert process.stdout is not None
        token = os.environ.get(TOKEN_VARIABLE)
        with self._lock:
            self._process = process
            self._send(
                {
                    "open": self._node.folder,
                    "term": self._term,
                    "gates": self._node.addresses(),
                    "environment": {} if token is None else {TOKEN_VARIABLE: token},
                }
            )
        for line in process.stdout:
            self._hear(line)
        status = process.wait()
        with self._lock:
            self._process = None
        return f"{'it was there, ' if self._heard else ''}status {status}"

    def _hear(self, line: str) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            said = {"error": line.strip()}
        if "runs" in said:
            if not self._heard:
                _LOGGER.info("node %s is there; %d of its gates run", self._node.name, len(said["runs"]))
            self._running, self._heard = frozenset(said["runs"]), time.monotonic()
        if "error" in said:
            _LOGGER.warning("node %s says: %s", self._node.name, said["error"])
