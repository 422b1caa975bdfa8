import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import penstock
from penstock.cli import main
from penstock.cli.app import app
from penstock.cli.gates import gates

COMMANDS = [
    [],
    ["demo"],
    ["state"],
    ["gate"],
    ["token"],
    ["push"],
    ["controller"],
    ["cluster"],
    ["streams"],
    ["gates"],
    *(["gates", each.name] for each in get_command(gates).commands.values()),
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
    result = CliRunner().invoke(app, ["token", "vehicles", "--days", "0"])
    assert result.exit_code == 2
    assert "--days" in plain(result.output)


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


@pytest.mark.parametrize("command", ["bench", "reproduce"])
def test_without_the_lab_its_commands_say_where_to_get_it(command, tmp_path):
    """An interpreter that sees all installed packages but the lab."""
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.lstrip("_").startswith("penstock"):
            (tmp_path / each.name).symlink_to(each)
    source = Path(penstock.__file__).parents[1]
    program = f"import sys; sys.path += {[str(tmp_path), str(source)]}; from penstock.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, command, "windows"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert f"penstock {command} is part of the package penstock-lab" in plain(ended.stderr)
    assert "pip install ./lab" in plain(ended.stderr)
