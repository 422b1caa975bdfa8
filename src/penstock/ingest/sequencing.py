"""Exactly once by sequence: what a gate does with a batch, from the number it expects alone."""

from dataclasses import dataclass

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Take the rows behind the first `skip`; all of them skipped is a duplicate. A gap is not taken."""

    skip: int
    gap: bool = False


def judge(expected: int, first: int, rows: int, *, connect: bool) -> Verdict:
    """What to do with the rows [first, first + rows) of a stream whose next row should be `expected`.

    Only a client that has just connected may go on behind a gap: another gate acknowledged the rest.

    >>> judge(100, 100, 10, connect=False)
    Verdict(skip=0, gap=False)
    >>> judge(100, 95, 10, connect=False)
    Verdict(skip=5, gap=False)
    >>> judge(100, 80, 10, connect=True)
    Verdict(skip=10, gap=False)
    >>> judge(100, 110, 10, connect=False), judge(100, 110, 10, connect=True)
    (Verdict(skip=0, gap=True), Verdict(skip=0, gap=False))
    """
    if first > expected:
        return Verdict(0, gap=not connect)
    return Verdict(min(expected - first, rows))
