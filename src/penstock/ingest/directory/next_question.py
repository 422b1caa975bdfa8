"""Which number follows the rows of streams, and who becomes their producer: asked of all gates that may know.

No I/O: the caller puts `requests` to gates and hands in what they answer. What holds: every gate that may
hold rows of a stream knows its new producer, and refuses older ones, before anyone hears of that producer.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.errors import NoGate
from penstock.ingest.directory.registry import Admit, StreamRegistry
from penstock.ingest.wire.protocol import NextRequest, NextSequences

__all__ = ["NextQuestion"]


class NextQuestion:
    """The question for the next sequences of streams, with `claim` also for a new producer of each.

    Ask `requests`, hand in the answers of all gates, and begin again if `conclude` has no answer yet. Both
    use the registry, which one thread at a time may do.
    """

    def __init__(
        self,
        registry: StreamRegistry,
        streams: Sequence[str],
        *,
        claim: bool,
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
        admit: Admit | None = None,
    ) -> None:
        self._registry, self._streams, self._claim = registry, streams, claim
        self._metadata, self._admit = metadata or {}, admit
        self._producers: dict[str, int] | None = None
        self._least: dict[str, int] = {}

    def requests(self, now: float) -> dict[str, NextRequest]:
        """What to ask each gate that may hold rows of these streams."""
        if self._claim:
            # The gate that the producer will be sent to is among those that hear of it.
            with suppress(NoGate):
                asked = {each: self._metadata.get(each) for each in self._streams}
                self._registry.where(asked, now, self._admit)
            self._producers = self._registry.claim(self._streams, self._least)
        holders = {each: self._registry.holders(each) for each in self._streams}
        return {
            gate: self._request(tuple(each for each in self._streams if gate in holders[each]))
            for gate in sorted(set().union(*holders.values()))
        }

    def _request(self, streams: tuple[str, ...]) -> NextRequest:
        given = self._producers
        return NextRequest(
            streams, producers=None if given is None else {each: given[each] for each in streams}
        )

    def conclude(self, answers: Sequence[NextSequences]) -> NextSequences | None:
        """The answer; None if a gate knows a producer that is newer: take a still newer one and ask again."""
        if self._producers is not None:
            # A gate that was without a controller before has given numbers of its own.
            known = {
                each: max(((a.producers or {}).get(each, 0) for a in answers), default=0)
                for each in self._streams
            }
            self._least = {each: n + 1 for each, n in known.items() if n > self._producers[each]}
            if self._least:
                return None
        held = {each: max((a.next.get(each, 0) for a in answers), default=0) for each in self._streams}
        highs = {each: self._registry.high(each) for each in self._streams}
        return NextSequences(
            next={each: max(held[each], highs[each]) for each in self._streams},
            producers=self._producers,
            held={each: held[each] for each in self._streams if held[each] < highs[each]} or None,
        )
