"""Hot keys of full outer joins on judged grids, which come, change and go while rows wait for partners."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from operators.cases import CASES, join
from operators.contract import KernelRun
from operators.test_contract import as_text
from penstock.distribution.on_grid import Duty, JudgedGrids
from penstock.operators.joins.candidates import Candidates
from penstock.operators.joins.judging import Duties
from penstock.operators.joins.spans import Spans
from penstock.operators.joins.spec import Pair
from penstock.routing import Spread, shaped_grid

FULL = {
    **{name: case for name, case in CASES.items() if name.startswith("full join") and "last" not in name},
    "full join that keeps rows": join("full", keep=(12, "forever")),
    "full join that matches rarely": join("full", within=15, condition="l.v < r.w AND l.v > 2"),
}


@dataclass
class HotRun(KernelRun):
    """All keys are hot, and each move lays them out anew."""

    grids: int = 0

    def _known(self):
        return self.hashes

    def _any_layout(self, channels=None):
        found = super()._any_layout(channels)
        self.grids += len(found.spread.grids)
        return found


def drawn(rng, epoch, side):
    """Two keys, one of them rare, and none; rows that are alike, and some that find nobody."""
    return [
        {"time": 8 * epoch + int(rng.integers(12)), "k": key, side: int(rng.integers(5))}
        for key in rng.choice([1, 1, 1, 2, None], int(rng.integers(0, 9))).tolist()
    ]


@pytest.mark.parametrize("channels", [1, 2, 3, 8])
@pytest.mark.parametrize("name", FULL)
def test_rows_are_right_however_grids_change_in_every_epoch(name, channels, tmp_path):
    case, rng = FULL[name], np.random.default_rng(channels)
    run = HotRun(case.relation, tmp_path, channels, seed=channels)
    for epoch in range(12 if channels < 8 else 7):
        run.step([drawn(rng, epoch, side) for side in ("v", "w")], (8 * epoch - 4, 8 * epoch - 6))
        # Before the drain as well: most rows wait then.
        run.move(channels=channels)
    run.drain(200)
    assert as_text(run.results) == as_text(case.oracle(run.accepted, 200))
    assert run.grids > 4 or channels == 1


@pytest.mark.parametrize("name", FULL)
def test_rows_are_right_while_channels_come_and_go(name, tmp_path):
    case, rng = FULL[name], np.random.default_rng(3)
    run = HotRun(case.relation, tmp_path, 3, 4, restless=True)
    for epoch in range(16):
        run.step([drawn(rng, epoch, side) for side in ("v", "w")], (8 * epoch - 4, 8 * epoch - 6))
    run.drain(300)
    assert as_text(run.results) == as_text(case.oracle(run.accepted, 300))
    assert run.grids


# What a grid gains.


@dataclass
class WatchedRun(KernelRun):
    """Counts the results and the new rows of each channel."""

    def spread(self, copied):
        (key,) = self.hashes.view(np.int64).tolist()
        shape = shaped_grid(copied, self.channels)
        cells = tuple(range(shape.channels))
        self.move(replace(self.layout, grids=Spread((key,), (len(cells),), (shape.columns,), cells)))


@pytest.mark.parametrize(
    ("condition", "most_pairs", "rows"), [(None, 0.2, 400 * (2 + 8)), ("l.v < r.w", 0.24, 400 * (3 + 7))]
)
def test_the_pairs_of_one_key_are_spread_over_eight_channels(tmp_path, condition, most_pairs, rows):
    case = join("full", within=15, condition=condition)
    run = WatchedRun(case.relation, tmp_path, 8)
    run.step([[{"time": 0, "k": 1, "v": 1}], [{"time": 0, "k": 1, "w": 1}]], (0, 0))
    run.spread(run.kernel.distribution.copied)
    rng, counts, received = np.random.default_rng(5), Counter(), []
    given = [
        [{"time": int(rng.integers(10, 40)), "k": 1, side: int(rng.integers(100))} for _ in range(400)]
        for side in ("v", "w")
    ]
    work = type(run.kernel).step

    def counted(kernel, channel):
        def emit(table):
            counts[channel.number] += table.num_rows
            channel.emit(table)

        received.append(sum(each.num_rows for each in channel.new if each is not None))
        return work(kernel, replace(channel, emit=emit))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(run.kernel), "step", counted)
        run.step(given, (10, 10))
    assert max(counts.values()) <= most_pairs * sum(counts.values())
    assert sum(received) == rows


# What a cell does that delivers no pairs.


def any_spans(rng, probes, builds):
    low = np.sort(rng.integers(0, builds, len(probes)))
    high = np.minimum(low + rng.integers(1, 60, len(probes)), builds)
    return Spans(probes, rng.permutation(builds), low, high)


@dataclass(frozen=True, eq=False)
class OneKey(Duties):
    """All rows are of one key, whose pairs are delivered elsewhere."""

    port: int = 0

    def judged(self, port, rows):
        return np.full(len(rows), port == self.port)

    def silent(self, port, rows):
        del port
        return np.ones(len(rows), bool)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("truth", [None, 0.5, 0.02])
def test_a_judge_marks_the_rows_that_have_a_partner(seed, truth):
    rng = np.random.default_rng(seed)
    sizes, judges_left = rng.integers(5, 80, 2), bool(rng.integers(2))
    spans = [
        any_spans(rng, rng.choice(size, size // 2, replace=False), other)
        for size, other in (sizes, sizes[::-1])
    ]
    candidates = Candidates(*spans, None)
    matches = rng.random(sizes) < (1.0 if truth is None else truth)
    looked = Counter()

    def matching(part):
        for each, left in ((part.left_probes, True), (part.right_probes, False)):
            for probe, build in () if each is None else each.blocks(7):
                one, other = (probe, build) if left else (build, probe)
                looked.update(zip(one.tolist(), other.tolist(), strict=True))
                true = matches[one, other]
                yield one[true], other[true]

    marks = [rng.random(size) < 0.3 for size in sizes]
    expected = [each.copy() for each in marks]
    for one, other in matching(candidates):
        expected[0][one] = expected[1][other] = True
    looked.clear()
    found = Pair(*(each.copy() for each in marks))
    duties = OneKey({}, (), Pair((), ()), port=int(not judges_left))
    duties.look(candidates, found, None if truth is None else matching)
    own = (found.left, found.right)[not judges_left]
    np.testing.assert_array_equal(own, expected[not judges_left])
    assert duties.delivering(candidates).left_probes is None
    assert max(looked.values(), default=1) <= 2  # both sides may probe for one pair here


def test_a_channel_has_duties_for_the_keys_whose_cells_it_has():
    grids = JudgedGrids({1: (3, (4, 5, 6, 7)), 2: (1, (4, 5, 7))})
    assert grids.duties(4) == {1: Duty(0, delivers=True), 2: Duty(0, delivers=False)}
    assert grids.duties(7) == {1: Duty(1, delivers=False), 2: Duty(1, delivers=True)}
    assert grids.duties(0) == {}
