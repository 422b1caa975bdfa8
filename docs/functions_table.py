"""Writes the table of certified functions into expressions.md: python docs/functions_table.py."""  # noqa: INP001

from pathlib import Path

from penstock.functions import CASTS, FUNCTIONS, Form, Function

PAGE = Path(__file__).with_name("expressions.md")
_BEGIN, _END = "<!-- table: from the functions -->", "<!-- end of table -->"
_WORDS = {"real": "number", "plain": "any plain type", "any": "any type but nested ones", "unit": "unit"}


def table() -> str:
    """One row for each function, group by group, then the casts."""
    heads = (
        "| function | arguments | result | raises | time zone | note |\n| --- | --- | --- | --- | --- | --- |"
    )
    return "\n".join(
        [f"{len(FUNCTIONS)} functions and operators, {len(CASTS)} casts.", "", heads, *_rows(), *_casts()]
    )


def page(text: str) -> str:
    """The text of the page with the table of today."""
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


def _rows() -> list[str]:
    found = []
    group = ""
    for each in FUNCTIONS.values():
        if each.group != group:
            group = each.group
            found.append(f"| **{group}** | | | | | |")
        found += [_row(each, form, first=place == 0) for place, form in enumerate(each.forms)]
    return found


def _row(function: Function, form: Form, *, first: bool) -> str:
    arguments = [_argument(form, place) for place in range(len(form.takes))]
    shown = function.written.format(*"abc", rest="b, …") if function.written else f"{function.name}()"
    cells = [
        f"`{shown}`".replace("|", "\\|") if first else "",
        ", ".join(arguments),
        form.gives if isinstance(form.gives, str) else "by the arguments",
        "for some values" if form.raises else "",
        "UTC" if form.zoned else "",
        function.note if first else "",
    ]
    return f"| {' | '.join(cells)} |"


def _argument(form: Form, place: int) -> str:
    kind = form.takes[place]
    shown = _WORDS.get(kind.removesuffix("*"), kind.removesuffix("*"))
    return ("literal " if place in form.literals else "") + shown + (" …" if kind.endswith("*") else "")


def _casts() -> list[str]:
    found = ["| **cast** | | | | | |"]
    for given in dict.fromkeys(given for given, _ in CASTS):
        for raises, zoned in ((False, False), (True, False), (False, True)):
            wanted = [
                to
                for (by, to), cast in CASTS.items()
                if by == given and (cast.raises, cast.zoned) == (raises, zoned)
            ]
            if wanted:
                cells = ["`cast(a as …)`", given, ", ".join(wanted), "for some values" if raises else ""]
                found.append(f"| {' | '.join([*cells, 'UTC' if zoned else '', ''])} |")
    return found


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
