"""Writes the table of aggregates into aggregates.md from the registry: python docs/aggregates_table.py."""  # noqa: INP001

import inspect
from pathlib import Path

from penstock.aggregates.aggregate import DEFINITIONS, Definition

PAGE = Path(__file__).with_name("aggregates.md")
_BEGIN, _END = "<!-- table: from the registry -->", "<!-- end of table -->"
_EVERYWHERE = {"where", "distinct"}  # that every aggregate takes


def table() -> str:
    """One row for each aggregate, in the order of their names."""
    rows = [_row(DEFINITIONS[name]) for name in sorted(DEFINITIONS)]
    heads = "| call | in SQL | arguments | result type | value |\n| --- | --- | --- | --- | --- |"
    return "\n".join([heads, *rows])


def page(text: str) -> str:
    """The text of the page with the table of today."""
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


def _row(definition: type[Definition]) -> str:
    parameters = inspect.signature(definition.construct).parameters.values()
    shown = [
        str(each).partition(":")[0] if each.default is each.empty else f"{each.name}={each.default}"
        for each in parameters
        if each.name not in _EVERYWHERE
    ]
    arguments = ", ".join(each.words for each in definition.takes) + (", …" if definition.variadic else "")
    value = definition.agreement.value + (f": {definition.detail}" if definition.detail else "")
    cells = [
        f"`{definition.name}({', '.join(shown)})`",
        ", ".join(f"`{each}`" for each in definition.sql_names),
        arguments,
        definition.gives,
        value,
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
