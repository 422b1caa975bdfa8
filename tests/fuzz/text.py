"""A program as text: SQL for the product and for Spark, and Python; one of many spellings by a seed.

A spelling decides what SQL leaves open: aliases (none, one that is another table's or column's name, one that
hides an outer table that is not needed), qualified or bare names, letter case, quotes, sub-queries in FROM or
in WITH, ordinals and aliases in GROUP BY, and how windows, bounds and intervals are written.
"""

from random import Random

from fuzz.operators import PYTHON
from fuzz.program import SECOND, Block, Program, Relation, Table, Verb, inputs_of, tables_of
from fuzz.text_names import (
    KEYWORDS,
    PLAIN_NAME,
    Unspeakable,
    apart,
    escaped,
    schema_text,
    variable,
)
from fuzz.text_python import python_block, split_text, splittable
from fuzz.text_statement import Statement

__all__ = ["Speller", "Unspeakable", "program_text", "spark_text"]


def program_text(program: Program) -> str:
    """The program as Python that can be run; `query` is its relation."""
    lines = [
        f"{variable(each)} = ps.stream({each.name!r}, {schema_text(each)!r}, time={each.time!r}, "
        f"delay='{each.delay} microseconds', ahead=None{f', key={each.key!r}' if each.key else ''})"
        for each in tables_of(program.query).values()
    ]
    return "\n".join([*lines, f"query = {Speller(program).source(program.query)}"])


def spark_text(program: Program) -> str:
    """The SQL of a program that Spark understands."""
    return Speller(program).statement(program.query)[0]


class Speller:
    """Writes relations; every choice comes from the seed of the spelling."""

    def __init__(self, program: Program) -> None:
        self.rng = Random(program.style)
        self.verbatim = program.verbatim
        self.tables = tables_of(program.query)
        self.program = program
        self.fresh = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self) -> str:
        self.fresh += 1
        return f"n{self.fresh}"

    # -- Python ------------------------------------------------------------------------------------------

    def source(self, relation: Relation) -> str:
        """A Python expression that makes the relation."""
        match relation:
            case Table():
                return variable(relation)
            case Verb():
                return PYTHON[relation.kind](relation, *(self.source(each) for each in relation.inputs))
            case Block(form="python"):
                return python_block(self, relation)
        if isinstance(relation, Block) and splittable(relation) and not self.verbatim and self.chance(0.3):
            return split_text(self, relation)
        text, definitions = self.statement(relation)
        streams = [variable(each) for each in self._streams(relation)]
        named = [f"{name}={source}" for name, source in definitions.items()]
        named += ["joined=functions.Joined"] if "joined(" in text else []
        return f'ps.sql("""{escaped(text)}""", {", ".join([*streams, *named])})'

    def _streams(self, relation: Relation) -> list[Table]:
        """The tables that a statement reads itself, and sometimes one that it does not."""
        found: dict[str, Table] = {}

        def visit(each: Relation) -> None:
            if isinstance(each, Table):
                found[each.name] = each
            elif not apart(each):
                for inner in inputs_of(each):
                    visit(inner)

        for each in inputs_of(relation):
            visit(each)
        return list(found.values())

    # -- SQL ---------------------------------------------------------------------------------------------

    def statement(self, relation: Relation) -> tuple[str, dict[str, str]]:
        """A whole text, and what it names of Python."""
        writer = Statement(self, relation)
        return writer.text(), writer.definitions

    def identifier(self, name: str) -> str:
        if not PLAIN_NAME.fullmatch(name) or name.lower() in KEYWORDS:
            return f"`{name}`"
        if self.chance(0.08):
            return f"`{name}`"
        if self.chance(0.06):
            return name.swapcase()
        return name

    def duration(self, micros: int) -> str:
        """As in WITHIN and in windows: 5 seconds."""
        if micros % (60 * SECOND) == 0 and micros and self.chance(0.7):
            return f"{micros // (60 * SECOND)} minutes"
        if micros % SECOND == 0:
            return f"{micros // SECOND} seconds"
        return f"{micros // 1000} milliseconds"

    def interval(self, micros: int) -> str:
        if micros % (60 * SECOND) == 0 and micros and self.chance(0.7):
            return f"INTERVAL '{micros // (60 * SECOND)}' MINUTE{self.rng.choice(['', 'S'])}"
        if micros % SECOND == 0:
            if self.chance(0.5):
                return f"INTERVAL {micros // SECOND} SECONDS"
            return f"INTERVAL '{micros // SECOND}' SECOND"
        return f"INTERVAL '{micros / SECOND:.3f}' SECOND"
