"""One text of SQL: what stands in WITH and in FROM, unions, table functions and first rows."""

from collections import Counter
from typing import TYPE_CHECKING

from fuzz.program import Block, Item, Ranked, Relation, Table, Union, relations_of
from fuzz.text_block import BlockWriter, Scope
from fuzz.text_names import BOUNDS, apart

if TYPE_CHECKING:
    from fuzz.text import Speller


class Statement:
    """One text of SQL."""

    def __init__(self, speller: "Speller", relation: Relation) -> None:
        self.speller, self.rng, self.relation = speller, speller.rng, relation
        self.definitions: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.ctes: list[tuple[str, str]] = []
        self.uses = Counter(id(each) for each in relations_of(relation))

    def text(self) -> str:
        body = self.select(self.relation, [])
        if not self.ctes:
            return body
        return f"WITH {', '.join(f'{name} AS ({text})' for name, text in self.ctes)} {body}"

    def select(self, relation: Relation, scopes: list[Scope]) -> str:
        match relation:
            case Block():
                return BlockWriter(self, relation, scopes).text()
            case Union():
                parts = [self.select(each, []) for each in relation.parts]
                return " UNION ALL ".join(
                    f"({each})" if place and self.speller.chance(0.2) else each
                    for place, each in enumerate(parts)
                )
            case Ranked():
                return self.ranked(relation)
        return f"SELECT * FROM {self.relation_name(relation)}"

    def relation_name(self, relation: Relation) -> str | None:
        """The name of a table, or of what Python made."""
        if isinstance(relation, Table):
            return relation.name
        if apart(relation):
            if id(relation) not in self.names:
                self.names[id(relation)] = self.speller.name()
                self.definitions[self.names[id(relation)]] = self.speller.source(relation)
            return self.names[id(relation)]
        return None

    def table_text(self, relation: Relation, *, named: bool = False) -> tuple[str, str | None]:
        """What stands in FROM, and the name under which it is known without an alias."""
        name = self.relation_name(relation)
        if name is not None:
            return self.speller.identifier(name), name
        if id(relation) in self.names:
            return self.names[id(relation)], self.names[id(relation)]
        inner = self.select(relation, [])
        if named or self.speller.chance(0.3):
            cte = self.cte_name(relation)
            self.names[id(relation)] = cte
            self.ctes.append((cte, inner))
            return cte, cte
        return f"({inner})", None

    def cte_name(self, relation: Relation) -> str:
        """A new name, or that of a table that nothing but this relation reads."""
        inside = Counter(each.name for each in relations_of(relation) if isinstance(each, Table))
        whole = Counter(each.name for each in relations_of(self.relation) if isinstance(each, Table))
        hidden = [name for name in inside if inside[name] == whole[name]]
        taken = {name.lower() for name, _ in self.ctes}
        if hidden and self.speller.chance(0.15):
            name = self.rng.choice(hidden)
            if name.lower() not in taken:
                return name
        return self.speller.name()

    def function(self, item: Item) -> str:
        """An item with windows as a table function."""
        text, name = self.table_text(item.relation, named=True)
        del name
        window, interval = item.window, self.speller.interval
        offset = [interval(window.offset)] if window.offset else []
        times = {
            "tumble": lambda: [interval(window.size), *offset],
            "hop": lambda: [interval(window.slide), interval(window.size), *offset],
            "cumulate": lambda: [interval(window.slide), interval(window.size), *offset],
            "session": lambda: [interval(window.size)],
        }[window.kind]()
        keys = ""
        if item.partition:
            keys = f" PARTITION BY {', '.join(map(self.speller.identifier, item.partition))}"
        time = item.relation.time
        arguments = [f"TABLE {text}{keys}", f"DESCRIPTOR({self.speller.identifier(time)})", *times]
        call = f"{window.kind.upper()}({', '.join(arguments)})"
        text = f"TABLE({call})" if self.speller.chance(0.7) else call
        # A sub-query that only passes rows on says the same.
        return f"(SELECT * FROM {text})" if self.speller.chance(0.15) else text

    def ranked(self, ranked: Ranked) -> str:
        identifier = self.speller.identifier
        function = "RANK()" if ranked.ties else "ROW_NUMBER()"
        partition = ", ".join(map(identifier, (*BOUNDS, *ranked.partition)))
        order = ", ".join(f"{identifier(name)}{' DESC' if down else ''}" for name, down in ranked.order)
        names = ", ".join(identifier(each.name) for each in ranked.columns)
        if ranked.item.window:
            text = self.function(ranked.item)
        else:
            text, _ = self.table_text(ranked.item.relation)
        r = ranked.rank
        return (
            f"SELECT {names} FROM (SELECT *, {function} OVER (PARTITION BY {partition} ORDER BY {order}) "
            f"AS {r} "
            f"FROM {text}) WHERE {self.ranks(ranked)}"
        )

    def ranks(self, ranked: Ranked) -> str:
        """Which ranks are wanted."""
        r, most = ranked.rank, ranked.most
        if len(ranked.but) == most - 1 and self.speller.chance(0.5):
            return self.rng.choice([f"{r} = {most}", f"{most} = {r}"]) if most > 1 else f"{r} = 1"
        upto = self.rng.choice([f"{r} <= {most}", f"{r} < {most + 1}", f"{most} >= {r}", f"{most + 1} > {r}"])
        parts = [upto, *(f"{r} <> {each}" for each in ranked.but)]
        self.rng.shuffle(parts)
        return " AND ".join(parts)
