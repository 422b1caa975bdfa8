import json

import pytest
import typer

from penstock_lab.cli.delivery import deliver
from penstock_lab.reports.report import Check, Machine, Report


def report(value):
    machine = Machine(cores=2, cpu="a processor", memory=8000, python="3.11", spark="4.3.0")
    check = Check("ratio", value, source="a promise", floor=25)
    rows = ({"engine": "penstock", "rows_per_s": 1000},)
    return Report("windows", "0.1.0", "2024-05-14T06:00:00+00:00", machine, 7, rows, (check,))


@pytest.mark.parametrize(("value", "status"), [(30.0, 0), (20.0, 1)], ids=["holds", "fails"])
@pytest.mark.parametrize("as_json", [True, False], ids=["json", "table"])
def test_the_status_follows_the_checks(value, status, as_json):
    with pytest.raises(typer.Exit) as ended:
        deliver(report(value), json=as_json)
    assert ended.value.exit_code == status


def test_json_is_the_only_thing_on_standard_output(capsys):
    with pytest.raises(typer.Exit):
        deliver(report(20.0), json=True)
    whole = json.loads(capsys.readouterr().out)
    assert whole["name"] == "windows"
    assert whole["checks"][0]["ok"] is False


def test_the_table_shows_rows_and_checks(capsys):
    with pytest.raises(typer.Exit):
        deliver(report(20.0), json=False)
    shown = capsys.readouterr().out
    assert "rows_per_s" in shown
    assert "FAILED" in shown
