"""How much admission may do: how often a stream moves, how many move, which never do, how few gates stay."""

from dataclasses import dataclass, field

from penstock.errors import BadAdmission

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Seconds between two moves of one stream, the most moves of a period, and streams that stay.

    At least `least_gates` gates stay open.
    """

    least_interval: float = 0.0
    most_moves: int = 100_000
    excluded: frozenset[str] = field(default_factory=frozenset)
    least_gates: int = 1

    def __post_init__(self) -> None:
        if self.least_interval < 0 or self.most_moves < 0 or self.least_gates < 0:
            raise BadAdmission(
                f"least_interval={self.least_interval}, most_moves={self.most_moves}, "
                f"least_gates={self.least_gates}; give numbers from 0"
            )
