"""How evenly a join's comparisons fall on channels if keys are skewed, with hot keys spread over grids.

Counted, not timed: the busiest channel over the mean, next to the same figure under plain hashing.
"""

from penstock_lab.bench.timing import Measured
from penstock_lab.reports import Check, Value
from penstock_lab.workloads import skewed_join_work

__all__ = ["skew"]

CHANNELS = 8
EXPONENT = 1.2
CEILING = 1.3


def skew(seed: int, tuples: int) -> Measured:
    """Zipf 1.2 keys on eight channels."""
    found = skewed_join_work(CHANNELS, EXPONENT, seed, tuples=tuples)
    rows: list[dict[str, Value]] = [
        {
            "engine": "penstock",
            "case": f"join of Zipf {EXPONENT} keys, {how}",
            "rows": 2 * tuples,
            "busiest_over_mean": round(value, 3),
        }
        for how, value in zip(("plain hashing", "hot keys spread"), found, strict=True)
    ]
    check = Check(
        f"busiest of {CHANNELS} channels over the mean, join of Zipf {EXPONENT} keys",
        round(found[1], 3),
        "promised for skewed joins",
        ceiling=CEILING,
    )
    return Measured(tuple(rows), (check,))
