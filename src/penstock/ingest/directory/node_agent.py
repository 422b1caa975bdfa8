"""`penstock node`: starts and stops gates on a host for a controller elsewhere, which speaks through a pipe.

The controller runs it by a command such as ssh. Lines of JSON come in: first `{"open": folder, "term": n,
"gates": […], "environment": {…}}`, then orders: `{"start": gate, "options": […]}`, `{"stop": gate}`,
`{"clear": gate}`. Lines go out: `{"runs": […]}`, the gates that run, each few seconds and at changes,
and `{"error": …}`. When the pipe ends, so does the agent; gates go on, and the next agent finds them.
"""

import json
import logging
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Final

from penstock import threads
from penstock.errors import BadMessage, PenstockError
from penstock.ingest.directory.gate_processes import GateProcesses

__all__ = ["serve_node"]

_LOOK_S: Final = 0.25
_TELL_S: Final = 2.0
_LOGGER = logging.getLogger("penstock.controller")


def serve_node(orders: IO[str], told: IO[str]) -> None:
    """Follow the orders of a controller until it ends."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threads.service("penstock-node-orders", lambda: _read(orders, lines), _LOGGER).start()
    first = _said(lines.get())
    try:
        processes = GateProcesses(Path(first["open"]).expanduser(), int(first["term"]))
        gates = [str(each) for each in first["gates"]]
        os.environ.update({str(name): str(value) for name, value in first["environment"].items()})
    except KeyError as error:
        _tell(told, {"error": f"the first line has no {error}; run this by a controller with --nodes"})
        return
    _follow(lines, told, processes, gates)


def _follow(
    lines: "queue.SimpleQueue[str]", told: IO[str], processes: GateProcesses, gates: list[str]
) -> None:
    runs: list[str] | None = None
    due = 0.0
    while True:
        try:
            line = lines.get(timeout=_LOOK_S)
        except queue.Empty:
            line = None
        if line == "":
            return
        if line is not None:
            _obey(line, told, processes)
        now = [each for each in gates if processes.runs(each)]
        if now != runs or time.monotonic() >= due:
            runs, due = now, time.monotonic() + _TELL_S
            _tell(told, {"runs": runs})


def _obey(line: str, told: IO[str], processes: GateProcesses) -> None:
    try:
        order = _said(line)
        match order:
            case {"start": gate, "options": options}:
                processes.start(str(gate), [str(each) for each in options])
            case {"stop": gate}:
                processes.stop(str(gate))
            case {"clear": gate}:
                processes.clear(str(gate))
    except (PenstockError, OSError) as error:
        _tell(told, {"error": str(error)})


def _said(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise BadMessage(
            f"{line[:60]!r} is no order; `penstock node` is run by a controller with --nodes, not by hand"
        )
    return said


def _read(orders: IO[str], lines: "queue.SimpleQueue[str]") -> None:
    for line in orders:
        lines.put(line)
    lines.put("")


def _tell(told: IO[str], what: dict[str, Any]) -> None:
    told.write(json.dumps(what) + "\n")
    told.flush()


def main_node() -> None:
    """The agent on the standard streams of this process; its log goes to standard error."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    threading.current_thread().name = "penstock-node"
    try:
        serve_node(sys.stdin, sys.stdout)
    except BrokenPipeError:
        os._exit(0)  # the controller is gone
