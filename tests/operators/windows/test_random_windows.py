"""Random windows of every kind against plain oracles: any parallelism, order, lateness, cuts and moves."""

import random
import tempfile

import pytest

import penstock as ps
from operators.cases import Total, Whole, cumulating, grouped, sliding, windows
from operators.contract import KernelRun
from operators.test_contract import accepted, as_text, settled, undated


def micros(*lengths):
    return [f"{each} us" for each in lengths]


def drawn_windows(rng):
    """Windows of a random kind, as a function of a relation, and the windows of a time for the oracle."""
    kind = rng.choice(["sliding", "sliding", "apart", "cumulating", "several"])
    if kind == "cumulating":
        step = rng.randint(1, 8)
        shape = (step * rng.randint(1, 12), step, rng.randint(0, 20))
        return lambda on, **rules: on.cumulate(*micros(*shape), **rules), [cumulating(*shape)]
    if kind == "several":
        return drawn_several(rng)
    size = drawn_size(rng)
    slide = rng.randint(size + 1, 2 * size + 4) if kind == "apart" else rng.randint(max(1, size // 20), size)
    shape = (size, slide, rng.randint(0, slide - 1))
    return lambda on, **rules: on.window(*micros(*shape), **rules), [sliding(*shape)]


def drawn_size(rng):
    return rng.choice([rng.randint(1, 12), rng.randint(1, 40), rng.randint(30, 90)])


def drawn_several(rng):
    """Windows of lengths that differ, so that their results can be told apart."""
    made, shapes, lengths, count = [], [], set(), rng.randint(2, 4)
    while len(made) < count:
        size = drawn_size(rng)
        slide = rng.randint(max(1, size // 20), size)
        own, kind, shape = {size}, (ps.window, sliding), (size, slide, rng.randint(0, slide - 1))
        if rng.random() < 0.4:
            step = rng.randint(1, 12)
            size = step * rng.randint(1, 6)
            kind, shape = (ps.cumulate, cumulating), (size, step, rng.randint(0, size - 1))
            own = set(range(step, size + 1, step))
        if lengths.isdisjoint(own):
            lengths |= own
            made.append(kind[0](*micros(*shape)))
            shapes.append(kind[1](*shape))
    return lambda on, **rules: on.windows(*made, **rules), shapes


def drawn_rules(rng):
    late = rng.choice(["count", "count", "count", "drop"])
    lateness = rng.choice([0, rng.randint(1, 60)]) if late == "count" else 0
    rules = {"late": late, "lateness": f"{lateness} us"}
    if rng.random() < 0.3:
        rules["early"] = f"{rng.randint(1, 30)} us"
    return rules, late, lateness


def drawn_epochs(rng):
    """Rows whose times go on from epoch to epoch, or jump about."""
    pace, reach = rng.choice([0, 3, 10, 25]), rng.choice([5, 30, 80])
    return [
        [
            [
                {
                    "time": pace * number + rng.randint(-reach, reach),
                    "k": rng.choice([None, 0, 1, 2, 3]),
                    "s": rng.choice(["", "a", "é", None]),
                    "v": rng.choice([None, -9, 4, 7]),
                    "n": rng.randint(0, 9),
                }
                for _ in range(rng.choice([0, 1, 4, 12]))
            ]
        ]
        for number in range(rng.randint(1, 14))
    ]


def check(seed):
    rng = random.Random(seed)
    put, shapes = drawn_windows(rng)
    rules, late, lateness = drawn_rules(rng)
    keys = rng.choice([[], ["k"], ["k"], ["s"], ["k", "s"]])
    own = rng.choice([None, None, Total, Whole])
    case = windows(put(grouped(*keys), **rules), shapes, keys, own=own, late=late, lateness=lateness)
    epochs, delay = drawn_epochs(rng), rng.choice([0, 5, 40])
    print(f"seed {seed}: {case.relation}, delay {delay}")  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        run = KernelRun(case.relation, folder, rng.randint(1, 5), seed, restless=True)
        found = run.run(epochs, delay)
    rows, end = accepted(case, epochs, delay)
    assert run.accepted == undated(rows), f"seed {seed}"
    assert as_text(settled(case, found)) == as_text(case.oracle(rows, end)), f"seed {seed}"


def test_random_windows_give_what_an_oracle_gives():
    for seed in range(40):
        check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_two_thousand_random_windows_give_what_an_oracle_gives(block):
    for seed in range(1_000 + 100 * block, 1_100 + 100 * block):
        check(seed)
