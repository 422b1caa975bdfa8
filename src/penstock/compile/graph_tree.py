"""The graph of a query as a tree of text: each output, below it what it is made of, down to the streams.

What is read twice is drawn once; the second time its stage is named.
"""

from penstock.compile.naming import named
from penstock.compile.stages import Subqueries
from penstock.query import Relation, Stream

__all__ = ["graph_tree"]


def graph_tree(subqueries: Subqueries) -> list[str]:
    """The lines of the drawing."""
    numbers: dict[Relation, int] = {stage.relation: stage.number for stage in subqueries.stages}
    lines: list[str] = []
    drawn: set[Relation] = set()

    def draw(relation: Relation, first: str, later: str) -> None:
        number = numbers.get(relation)
        label = f"   [stage {number}]" if number is not None else ""
        again = relation in drawn and not isinstance(relation, Stream)
        lines.append(f"{first}{named(relation)}{label}{', drawn above' if again else ''}")
        if again:
            return
        drawn.add(relation)
        for place, each in enumerate(relation.inputs):
            last = place + 1 == len(relation.inputs)
            draw(each, f"{later}{'└─ ' if last else '├─ '}", f"{later}{'   ' if last else '│  '}")

    for place, output in enumerate(subqueries.query.outputs):
        lines.append(f"output {place}")
        draw(output, "└─ ", "   ")
    return lines
