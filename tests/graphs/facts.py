"""What can be told of a relation before it is run, so that only graphs with one answer are drawn."""

from graphs.graph import Branch, Joined, Mapped, Node, Select, Source, Union, Where, Windowed


class Facts:
    """Facts about the nodes of a list that still grows."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    def distinct(self, place: int) -> set[str] | None:
        """Columns that tell rows of equal time apart; None where there are none, given distinct streams."""
        node = self.nodes[place]
        match node.operator:
            case Source():
                return set()
            case Windowed():
                return {name for name, _ in node.operator.keys}
            case Joined():
                return None
            case Union():
                one, other = node.inputs
                apart = not (self.streams(one) & self.streams(other))
                return set() if apart and self.distinct(one) == self.distinct(other) == set() else None
        before = self.distinct(node.inputs[0])
        if before is None or isinstance(node.operator, (Where, Branch)):
            return before
        assert isinstance(node.operator, (Select, Mapped))
        return before if before <= set(node.names) else None

    def streams(self, place: int) -> set[int]:
        """The streams that a relation is made of."""
        node = self.nodes[place]
        return {place} if not node.inputs else {each for one in node.inputs for each in self.streams(one)}

    def fed(self, place: int) -> bool:
        """Whether a stream reaches the relation through stateless operators alone."""
        node = self.nodes[place]
        if node.stateful:
            return False
        return not node.inputs or any(self.fed(each) for each in node.inputs)

    def waits(self, place: int) -> bool:
        """Whether it depends on an outer join with the last rows, whose promise hangs on unmatched rows."""
        node = self.nodes[place]
        operator = node.operator
        outer = isinstance(operator, Joined) and operator.last is not None and operator.how != "inner"
        return outer or any(self.waits(each) for each in node.inputs)

    def may_unite(self, one: int, other: int) -> bool:
        """Whether a union is allowed and which of its tuples are late can be told from the streams."""
        if self.nodes[one].time != self.nodes[other].time:
            return False
        return not any(self.waits(a) and self.fed(b) for a, b in ((one, other), (other, one)))
