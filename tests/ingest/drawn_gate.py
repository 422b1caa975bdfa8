"""The decisions of one gate, without sockets or files: batches in, actions out."""

import pyarrow as pa

from penstock.ingest import Limits
from penstock.ingest.gate.events import BatchOffered, BatchPrepared, CallOpened, GroupDurable, Prepare, Send
from penstock.ingest.gate.state import GateState, Restored
from penstock.ingest.wire.protocol import Push

SCHEMA = pa.schema([("n", pa.int64())])
LIMITS = Limits(stream_bytes=1000, gate_bytes=2000, store_bytes=10_000)
CALL = 1


class Drawn:
    """A gate with one open call; rows count 10 bytes each."""

    def __init__(self, limits=LIMITS, restored=None, may_push=lambda _: True):
        self.state = GateState(limits, restored or Restored(schemas={"r": SCHEMA}))
        self.feed(CallOpened(CALL, SCHEMA, may_push))

    def feed(self, event, now=0.0):
        return self.state.handle(event, now)

    def offer(self, sequence, rows, call=CALL, size=None, stream="r/a", **more):
        push = Push(stream, sequence, **more)
        return self.feed(BatchOffered(call, push, rows, 10 * rows if size is None else size))

    def send(self, sequence, rows, call=CALL, stream="r/a", *, held_up=False, **more):
        """Offer and prepare a batch; what the state then does."""
        (prepare,) = self.offer(sequence, rows, call, stream=stream, **more)
        assert isinstance(prepare, Prepare), prepare
        event = BatchPrepared(
            call,
            Push(stream, sequence, **more),
            rows,
            prepare.skip,
            prepare.take,
            10 * prepare.take,
            None,
            held_up,
        )
        return self.feed(event, now=1.5)

    def durable(self, *appends, store_bytes=0):
        return self.feed(GroupDurable(appends, store_bytes, 1e6))


def answer(actions):
    (action,) = actions
    assert isinstance(action, Send)
    return action.answer
