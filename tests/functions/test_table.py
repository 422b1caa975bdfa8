import runpy
from pathlib import Path

from penstock.functions import CASTS, FUNCTIONS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_table_of_today():
    script = runpy.run_path(str(DOCS / "functions_table.py"))
    text = (DOCS / "expressions.md").read_text()
    assert script["page"](text) == text, "run python docs/functions_table.py"


def test_there_are_enough_of_them():
    assert len(FUNCTIONS) >= 150
    assert len(CASTS) >= 50
