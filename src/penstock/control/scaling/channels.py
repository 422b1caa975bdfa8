"""How many channels a stage is worth on the cores that there are, and when a change pays for what it moves.

Stages take turns on the same cores, so channels beyond the cores add nothing; and a channel whose work in an
epoch is below the overhead of a task costs more than it saves.
"""

from penstock.errors import BadScaling

__all__ = ["channels_pay", "channels_worth"]


def channels_worth(work: float, cores: int, overhead: float = 0.02) -> int:
    """Channels for `work` processor seconds an epoch on `cores`, if a task itself costs `overhead`.

    >>> channels_worth(10.0, cores=8), channels_worth(0.05, cores=8), channels_worth(0.0, cores=8)
    (8, 2, 1)
    """
    if work < 0 or cores < 1 or overhead <= 0:
        raise BadScaling(
            f"work={work}, cores={cores}, overhead={overhead}; give 0 or more, 1 or more, above 0"
        )
    return max(min(int(work / overhead), cores), 1)


def channels_pay(work: float, before: int, after: int, epochs: int, move: float) -> bool:
    """Whether `after` channels save more over `epochs` epochs than the move of state takes, in seconds.

    What a wish has lasted is a fair guess of how long it will: rent or buy, at most twice the price is lost.
    Fewer channels save no time; they pay if nothing has to move.

    >>> channels_pay(8.0, 2, 8, epochs=2, move=5.0), channels_pay(8.0, 2, 8, epochs=1, move=5.0)
    (True, False)
    """
    saved = work / before - work / after
    return saved * epochs > move if after > before else move <= 0
