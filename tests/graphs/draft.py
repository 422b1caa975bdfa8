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
        """A relation that something can follow, more often one that nothing reads yet."""
        every = [place for place, node in enumerate(self.nodes) if not node.revising]
        unread = [place for place in self.unread() if place in every]
        return self.rng.choice(unread if unread and self.rng.random() < 0.7 else every)

    def name(self) -> str:
        """A name that no column has."""
        self._named += 1
        return f"x{self._named}"
