"""How much admission may do: how often a stream moves, how many move in a period, which never do."""

from dataclasses import dataclass, field

from penstock.errors import BadAdmission

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Seconds between two moves of one stream, the most moves of a period, and streams that stay."""

    least_interval: float = 0.0
    most_moves: int = 100_000
    excluded: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if self.least_interval < 0 or self.most_moves < 0:
            raise BadAdmission(
                f"least_interval={self.least_interval}, most_moves={self.most_moves}; give numbers from 0"
            )
