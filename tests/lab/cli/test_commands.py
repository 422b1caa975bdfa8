import re

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app

BENCHMARKS = [
    "windows",
    "latency",
    "pacing",
    "executors",
    "channels",
    "skew",
    "growth",
    "routing",
    "migration",
    "splits",
    "operators",
    "order",
    "nexmark",
    "peers",
    "process",
    "rescale",
    "subkeys",
    "gates",
    "scaling",
    "admission-decisions",
]
COMMANDS = [["bench"], ["reproduce"], *(["bench", name] for name in BENCHMARKS)]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_the_lab_adds_its_commands():
    result = CliRunner().invoke(app, ["--help"])
    assert {"bench", "reproduce"} < set(plain(result.output).split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_has_help_with_an_example(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert f"Example: {' '.join(['penstock', *command])}" in plain(result.output)


def test_an_option_out_of_range_is_a_usage_error():
    result = CliRunner().invoke(app, ["bench", "windows", "--rows", "0"])
    assert result.exit_code == 2
    assert "--rows" in plain(result.output)
