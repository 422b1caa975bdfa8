import re
import sys

import pytest
from typer.testing import CliRunner

from penstock.cli import main
from penstock.cli.app import app

COMMANDS = [
    [],
    ["demo"],
    ["state"],
    ["gate"],
    ["token"],
    ["bench"],
    ["bench", "windows"],
    ["bench", "latency"],
    ["bench", "growth"],
    ["bench", "routing"],
    ["bench", "splits"],
    ["bench", "operators"],
    ["bench", "process"],
    ["bench", "rescale"],
    ["bench", "subkeys"],
    ["push"],
    ["controller"],
]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_has_help_with_an_example(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert f"Example: {' '.join(['penstock', *command])}" in plain(result.output)


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert re.fullmatch(r"penstock (\d+\.\d+\.\d+|from a source tree)\n", result.output)


def test_an_unknown_command_is_a_usage_error():
    result = CliRunner().invoke(app, ["dmeo"])
    assert result.exit_code == 2
    assert "No such command 'dmeo'" in plain(result.output)


def test_an_option_out_of_range_is_a_usage_error():
    result = CliRunner().invoke(app, ["bench", "windows", "--rows", "0"])
    assert result.exit_code == 2
    assert "--rows" in plain(result.output)


def test_an_error_of_penstock_is_one_message_and_status_2(tmp_path, monkeypatch, capsys):
    (tmp_path / "thesis.txt").write_text("precious")
    monkeypatch.setattr(sys, "argv", ["penstock", "demo", "--output", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert shown.out == ""
    assert plain(shown.err).startswith(f"Error: {tmp_path} holds files that the demo did not write")
    assert "Traceback" not in shown.err
