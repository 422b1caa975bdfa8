"""A stall of this process before or after any durable operation, or listing of a folder."""

from contextlib import contextmanager

import pytest

from penstock import durable
from penstock.state.storage import Location


class Stall:
    """Calls a function once, at the n-th place; `left` is above zero if that was never reached."""

    def __init__(self, at, meanwhile):
        self.left, self.meanwhile = at, meanwhile

    def around(self, call, *given):
        self.passed()
        found = call(*given)
        self.passed()
        return found

    def passed(self):
        self.left -= 1
        if self.left == 0:
            self.meanwhile()


@contextmanager
def stalling(at, meanwhile, *, besides=()):
    """Call `meanwhile` at the n-th place of this block.

    `besides` are operations that do not count, and names of folders whose listing does not.
    """
    stall, before, names = Stall(at, meanwhile), durable._before, Location.names

    def operation(step, kind):
        return before(step, kind) if kind in besides else stall.around(before, step, kind)

    def listing(place):
        own = place.uri.rpartition("/")[2]
        return names(place) if own in besides else stall.around(names, place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "_before", operation)
        patch.setattr(Location, "names", listing)
        yield stall
