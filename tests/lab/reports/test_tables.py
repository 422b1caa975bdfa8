import io
import json
from dataclasses import replace

from rich.console import Console

from penstock_lab.reports.report import Check, Difference, Machine, Report
from penstock_lab.reports.tables import emit_json, say, show

REPORT = Report(
    "growth",
    "0.1.0",
    "2024-01-01T00:00:00+00:00",
    Machine(cores=2, cpu="a processor", memory=1024, python="3.11.7", spark="4.3.0"),
    7,
    ({"case": "wide", "rows_per_s": 123456}, {"case": "late", "epoch_s": 0.25}),
    (Check("epoch time", 2.0, "a bound", ceiling=1.25),),
)


def test_rows_of_different_columns_share_one_table():
    out = io.StringIO()
    show(REPORT, Console(file=out, width=120))
    assert "123,456" in out.getvalue()
    assert "0.25" in out.getvalue()
    assert "FAILED" in out.getvalue()


def test_each_section_is_a_table_with_its_own_columns():
    out = io.StringIO()
    rows = ({"section": "cases", "wall_s": 1.5}, {"section": "epochs", "epoch_s": 0.25})
    show(replace(REPORT, rows=rows, checks=()), Console(file=out, width=120))
    lines = [line.strip() for line in out.getvalue().splitlines()[2:]]
    assert lines == ["", "cases", "wall_s", "1.5", "", "epochs", "epoch_s", "0.25"]


def test_json_alone_is_on_standard_output(capsys):
    say("working")
    emit_json(REPORT)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["name"] == "growth"
    assert "working" in captured.err


def test_a_check_that_is_not_judged_is_shown_with_the_reason():
    out = io.StringIO()
    check = Check("ratio", 11.0, "a promise", floor=25, unjudged="one small epoch")
    show(replace(REPORT, checks=(check,)), Console(file=out, width=120))
    assert "not judged: one small epoch" in " ".join(out.getvalue().split())
    assert "FAILED" not in out.getvalue()


def test_a_check_that_differs_is_shown_with_the_reason():
    out = io.StringIO()
    known = Difference("the paper counts each copy", 10, 12)
    check = Check("ratio", 11.0, "a paper", floor=25, differs=known)
    show(replace(REPORT, checks=(check,)), Console(file=out, width=120))
    assert "differs, because the paper counts each copy" in " ".join(out.getvalue().split())
    assert "FAILED" not in out.getvalue()
