"""Crash points: every durable operation names a step, at which a process dies on request."""

import ast
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import durable
from penstock.durable import Purpose

PACKAGE = Path(__file__).parent.parent / "src" / "penstock"

# What makes a change to files last, takes it back, or gives it a name.
OF_OS = frozenset(
    {"fsync", "fdatasync", "rename", "replace", "link", "unlink", "remove", "ftruncate", "truncate"}
)
OF_PATHS = frozenset({"unlink", "rename", "write_bytes", "write_text"})
# The demo's input is written again for each run, and is no part of the product's promises.
EXEMPT = frozenset({"durable.py", "demo/feed.py"})


def lasting_calls(tree):
    """The lines that touch files past `penstock.durable`, by functions of os or methods of a path."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        if owner != "durable" and node.func.attr in (OF_OS if owner == "os" else OF_PATHS):
            yield node.lineno


def within_a_step(tree, line):
    """Whether a line stands inside of `with durable.writing(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and node.lineno <= line <= (node.end_lineno or 0):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any(getattr(call.func, "attr", "") == "writing" for call in calls):
                return True
    return False


@pytest.mark.parametrize("text", ["os.fsync(f)", "path.unlink()", "os.replace(a, b)", "p.write_bytes(b'')"])
def test_an_operation_past_the_steps_is_seen(text):
    assert list(lasting_calls(ast.parse(text))) == [1]


def test_every_durable_operation_has_a_step():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text())
        if place not in EXEMPT:
            lines = [line for line in lasting_calls(tree) if not within_a_step(tree, line)]
            found += [f"{place}:{line}" for line in lines]
    assert not found, f"use penstock.durable, which names the step: {', '.join(found)}"


PROGRAM = """
import sys
from penstock.durable import Purpose
from penstock.state.storage import Location
folder = Location.of(sys.argv[1])
for number in range(3):
    folder.write(f"{number}.json", b"x" * number, Purpose.PLAN)
"""


def run(folder, **environment):
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], env={**os.environ, **environment}, check=False
    ).returncode


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("plan/write", []),
        ("plan/rename", []),
        ("plan/sync folder", ["0.json"]),
        ("plan/rename:3", ["0.json", "1.json"]),
    ],
)
def test_a_process_dies_at_the_point_that_was_asked_for(tmp_path, point, left):
    assert run(tmp_path / "a", PENSTOCK_DIE_AT=point) == -signal.SIGKILL
    whole = sorted(path.name for path in (tmp_path / "a").iterdir() if not path.name.startswith("_"))
    assert whole == left


def test_a_point_that_is_never_reached_kills_nobody(tmp_path):
    assert run(tmp_path / "a", PENSTOCK_DIE_AT="manifest/rename") == 0


def test_operations_are_recorded_in_order_with_their_bytes(tmp_path):
    assert run(tmp_path / "a", PENSTOCK_RECORD=str(tmp_path / "record")) == 0
    lines = [json.loads(line) for line in (tmp_path / "record" / "operations").read_text().splitlines()]
    assert [each["operation"] for each in lines[:4]] == ["write", "sync", "rename", "sync folder"]
    assert {each["step"] for each in lines} == {Purpose.PLAN}
    assert (tmp_path / "record" / "bytes" / lines[9]["bytes"]).read_bytes() == b"xx"


@pytest.mark.parametrize(("point", "left"), [("plan/rename:2", ["0.json"]), ("plan/write:1+", [])])
def test_an_operation_fails_where_it_was_asked_for(tmp_path, point, left):
    assert run(tmp_path / "a", PENSTOCK_FAIL_AT=point) == 1
    whole = sorted(path.name for path in (tmp_path / "a").iterdir() if not path.name.startswith("_"))
    assert whole == left


def test_a_failure_passes_or_lasts():
    for text, outcomes in {
        "plan/write:2": [True, False, True, True],
        "plan/write:2+": [True, False, False, False],
    }.items():
        failure = durable._Failure(text)
        assert [passes(failure) for _ in outcomes] == outcomes


def passes(failure):
    try:
        failure.at(Purpose.PLAN, "write")
    except OSError as error:
        return error.errno != errno.EIO
    return True
