"""A failure as a text that can be run: the smallest program found, its rows, and what went wrong."""

import re
from typing import TYPE_CHECKING

from fuzz.compare import Different
from fuzz.program import Program, tables_of
from fuzz.shrink import shrunk
from fuzz.text import program_text

if TYPE_CHECKING:
    from fuzz.checking import Judge


def failure_of(error: Exception) -> str:
    """What kind of failure it is, without the rows: a smaller program has to fail like this."""
    text = str(error)
    if isinstance(error, Different):
        text = re.sub(r"^(whole|cut|resumed|Spark|[a-z]+ed): ", "", text)
        if text.startswith("lacking"):
            lacking, extra = "lacking none" not in text, "too many none" not in text
            return f"Different {'lacking' if lacking else ''} {'extra' if extra else ''}"
    return f"{type(error).__name__} {text[:30]}"


def report(program: Program, judge: "Judge", *, shrink: bool = True, most: int = 300) -> str:
    """Shrink a failing program and write it down."""
    error = judge.error(program)
    if error is None:
        return f"seed {program.seed}: failed once, and not again"
    small = program
    if shrink:
        kind = failure_of(error)

        def fails(candidate: Program) -> bool:
            found = judge.error(candidate)
            return found is not None and failure_of(found) == kind

        small = shrunk(program, fails, most)
        error = judge.error(small) or error
    lines = [f"# seed {program.seed}, {small.epochs} epochs, {small.channels} channels, style {small.style}"]
    lines += ["import penstock as ps", "from fuzz import functions", program_text(small)]
    for table in tables_of(small.query).values():
        lines += [f"# {table.name}: {', '.join(table.names)}", *(f"#   {row}" for row in table.rows)]
    return "\n".join([*lines, f"# {type(error).__name__}: {str(error)[:1500]}", ""])
