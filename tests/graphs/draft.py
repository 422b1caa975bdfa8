"""A graph that grows operator by operator."""

from random import Random

from graphs.facts import Facts
from graphs.tuples import clock


class Draft:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.clock = clock(rng)
        self.facts = Facts([])
        self.nodes = self.facts.nodes
        self._named = 0

    def unread(self) -> list[int]:
        """The relations that nothing reads yet."""
        used = {each for node in self.nodes for each in node.inputs}
        return [place for place in range(len(self.nodes)) if place not in used]

    def pick(self) -> int:
        """A relation, more often one that nothing reads yet."""
        return self.rng.choice(self.unread() if self.rng.random() < 0.7 else range(len(self.nodes)))

    def name(self) -> str:
        """A name that no column has."""
        self._named += 1
        return f"x{self._named}"
