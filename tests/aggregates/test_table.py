import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_table_of_the_registry():
    script = runpy.run_path(str(DOCS / "aggregates_table.py"))
    text = (DOCS / "aggregates.md").read_text()
    assert script["page"](text) == text, "run python docs/aggregates_table.py"
