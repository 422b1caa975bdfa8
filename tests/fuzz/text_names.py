"""What the writers of text share: quoted names, what a relation shows, and that a text cannot say it."""

import re

from fuzz.program import MARK, Block, Relation, Sub, Table, Union, Verb

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
BOUNDS = ("window_start", "window_end")
KEYWORDS = {"order", "user", "when"}


class Unspeakable(Exception):  # noqa: N818 -- it is an answer, not a fault
    """This spelling cannot say it."""


def variable(table: Table) -> str:
    return f"_{table.name}"


def schema_text(table: Table) -> str:
    return ", ".join(f"`{each.name}` {each.type}" for each in table.columns)


def backticks(text: str) -> str:
    """Marks as quoted names of one relation."""
    return MARK.sub(lambda each: f"`{each[2]}`", text)


def escaped(text: str) -> str:
    """Text as it stands between quotes in Python."""
    return text.replace("\\", "\\\\")


def quote(name: str) -> str:
    return name if PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS else f"`{name}`"


def apart(relation: Relation) -> bool:
    """Whether a relation is made in Python and named in SQL."""
    return isinstance(relation, Verb) or (isinstance(relation, Block) and relation.form == "python")


def shown(relation: Relation) -> bool:
    """Whether it has no column but those that it selects: bounds of windows and times of pairs stay."""
    match relation:
        case Block(group=None):
            return (
                not relation.joins
                and isinstance(relation.first.relation, Table)
                and not relation.first.window
            )
        case Block():
            return relation.group.window is None or {*BOUNDS} <= {each.name for each in relation.columns}
        case Union():
            return all(map(shown, relation.parts))
    return isinstance(relation, Table)


def outer_items(sub: Sub) -> set[str]:
    """The items around a sub-query that it reads."""
    texts = [each.spark for pair in sub.keys for each in pair]
    texts += [each.spark for each in (*sub.conditions, *sub.inner)]
    found = {mark[1] for text in texts for mark in MARK.finditer(text)}
    return (found | ({sub.bound.by} if sub.bound.by else set())) - {sub.item.id}
