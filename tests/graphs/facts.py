"""What can be told of a relation before it is run, so that only graphs with one answer are drawn."""

from graphs.graph import (
    Branch,
    Counted,
    Joined,
    Mapped,
    Node,
    Select,
    Sessioned,
    Sliding,
    Source,
    Union,
    Where,
    Windowed,
)


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
            case Windowed(shapes=(Sliding(),)) | Sessioned():
                return {name for name, _ in node.operator.keys}
            case Windowed() | Counted() | Joined():
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

    def endless(self, place: int) -> bool:
        """Whether an outer join with the last rows feeds it: its rows are of any age, so no stage follows."""
        node = self.nodes[place]
        if node.stateful:
            return (
                isinstance(node.operator, Joined)
                and bool(node.operator.last)
                and node.operator.how != "inner"
            )
        return any(self.endless(each) for each in node.inputs)
