"""What a channel hands back to the driver: what it left behind and what it did."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from penstock.runtime.former import Formed
from penstock.runtime.key_counts import KeyCounts
from penstock.runtime.progress import ChannelWork
from penstock.runtime.results import Output
from penstock.runtime.segments import Segment

__all__ = ["Receipt", "channel_work"]


@dataclass(frozen=True)
class Receipt:
    """What a channel of a stage did in an epoch.

    `received` rows came in and stand for `tuples`; `newest` is the last pane among them; `seconds` is how
    long the kernel was busy, `cpu_seconds` the processor time of it. `keys` counts the keys of what came in;
    `formed` is what formers did for this channel, where hot keys are split.
    """

    channel: int
    segments: tuple[Segment, ...]
    outputs: tuple[Output, ...]
    received: int = 0
    tuples: int = 0
    newest: int | None = None
    seconds: float = 0.0
    keys: KeyCounts = field(default_factory=KeyCounts)
    cpu_seconds: float = 0.0
    formed: tuple[Formed, ...] = ()

    @property
    def busy(self) -> float:
        """How long the kernel was busy, and formers for this channel before it."""
        return self.seconds + sum(each.seconds for each in self.formed)

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
        formed = tuple(Formed(**each) for each in value.pop("formed"))
        return cls(segments=segments, outputs=outputs, keys=keys, formed=formed, **value)


def channel_work(receipts: Sequence[Receipt]) -> tuple[ChannelWork, ...]:
    """What each channel of a stage did: rows that it took or formed, and its time for both.

    One receipt for each channel, in their order.
    """
    rows = [0 if each.formed else each.tuples for each in receipts]
    forming = [0.0] * len(receipts)
    for formed in (formed for each in receipts for formed in each.formed):
        rows[formed.former] += formed.rows
        forming[formed.former] += formed.seconds
    return tuple(
        ChannelWork(count, each.seconds + formed, each.cpu_seconds + formed)
        for count, each, formed in zip(rows, receipts, forming, strict=True)
    )
