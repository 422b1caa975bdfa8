"""What a channel hands back to the driver: what it left behind and what it did."""

import json
from dataclasses import asdict, dataclass, field

from penstock.runtime.key_counts import KeyCounts
from penstock.runtime.results import Output
from penstock.runtime.segments import Segment

__all__ = ["Receipt"]


@dataclass(frozen=True)
class Receipt:
    """What a channel of a stage did in an epoch.

    `received` rows came in and stand for `tuples`; `newest` is the last pane among them; `seconds` is how
    long the kernel was busy. `keys` counts the keys of what came in.
    """

    channel: int
    segments: tuple[Segment, ...]
    outputs: tuple[Output, ...]
    received: int = 0
    tuples: int = 0
    newest: int | None = None
    seconds: float = 0.0
    keys: KeyCounts = field(default_factory=KeyCounts)

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """The receipt that a text stands for."""
        value = json.loads(text)
        segments = tuple(Segment(**each) for each in value.pop("segments"))
        outputs = tuple(Output(**each) for each in value.pop("outputs"))
        keys = KeyCounts.from_json(value.pop("keys"))
        return cls(segments=segments, outputs=outputs, keys=keys, **value)
