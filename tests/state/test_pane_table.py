import pyarrow as pa

from penstock.operators.windows.sliding import extents
from penstock.routing import SlidingPanes
from penstock.state import PANE, ChannelStore, Location, PaneTable, Segment, panes_between
from penstock.state.pane_nodes import Extent
from state.kinds import KEYS, Sums


class Channel:
    """One channel of windows, epoch after epoch, every epoch closing what it can."""

    def __init__(self, span, tmp_path):
        self.windows, self.folder = SlidingPanes(span, 1), Location(str(tmp_path))
        self.table = PaneTable("panes", KEYS, span=span)
        self.segments, self.opened = [], None

    def step(self, cells, opens):
        windows = self.windows
        columns = {KEYS[0]: [key for _, key in cells], KEYS[1]: ["k"] * len(cells)}
        rows = pa.table({**columns, PANE: [pane for pane, _ in cells], "n": [1] * len(cells)})
        kept = None if self.opened is None else windows.start(self.opened)
        opened = self.table.open(ChannelStore(self.folder, "e", tuple(self.segments)), Sums(), kept)
        first = [each for each in (opened.first, *(pane for pane, _ in cells)) if each is not None]
        start = windows.first_with(min(first))
        closing = range(start if self.opened is None else max(start, self.opened), opens)
        held = [table for _, table in opened.held(opened.pieces(*extents(windows, closing)))]
        complete = Extent(*(windows.end(each - 1) for each in (closing.start, closing.stop)))
        self.segments = opened.close(rows if cells else None, windows.start(opens), complete)
        self.opened = opens
        return closing, pa.concat_tables([rows, *(each.select(rows.column_names) for each in held)])


def test_long_windows_are_read_from_coarser_nodes(tmp_path):
    channel = Channel(150, tmp_path)
    for pane in range(300):
        closing, rows = channel.step([(pane, key) for key in range(5)], pane - 148)
    assert {each.level for each in channel.segments} == {0, 8, 64}
    assert len(closing) == 1
    assert sum(rows["n"].to_pylist()) == 150 * 5
    assert rows.num_rows < 45 * 5


def test_state_does_not_grow_once_windows_close(tmp_path):
    channel, sizes = Channel(20, tmp_path), []
    for pane in range(200):
        channel.step([(pane, key) for key in range(5)], pane - 18)
        sizes.append(sum(each.rows for each in channel.segments))
    assert max(sizes[150:]) <= max(sizes[50:100])


def test_nodes_around_panes_without_nodes_are_not_taken_to_cover_them(tmp_path):
    # Keys of the panes 24 to 31 come once each, so no nodes are worth keeping there; all around they are.
    channel = Channel(200, tmp_path)
    for epoch in range(34):
        cells = [(pane, pane if epoch == 3 else 0) for pane in range(8 * epoch, 8 * epoch + 8)]
        closing, rows = channel.step(cells, channel.windows.first_with(8 * epoch + 8))
        panes, n = rows[PANE].to_numpy(), rows["n"].to_numpy()
        for window in closing:
            wanted = min(200, window + 200) if window < 0 else 200
            assert n[(panes >= window) & (panes < window + 200)].sum() == wanted


def test_nodes_stay_where_all_that_had_rows_have_them():
    table = PaneTable("panes", KEYS, span=1000)
    base, nodes, coarse = (Segment("a", "panes", 0, 64, 1, 1, level) for level in (0, 8, 64))
    assert table.arrive([[base, nodes, coarse]]) == (base, nodes, coarse)
    # The other channel has rows in panes 20 to 44, and nodes for 24 to 31.
    other, own = Segment("b", "panes", 20, 45, 1, 1), Segment("b", "panes", 24, 32, 1, 1, 8)
    found = table.arrive([[base, nodes, coarse], [other, own]])
    assert found[:2] == (base, other)
    cuts = [(each.name, each.level, each.first, each.end) for each in found[2:]]
    assert cuts == [("a", 8, 0, 16), ("a", 8, 24, 32), ("a", 8, 48, 64), ("b", 8, 24, 32)]
    # Where it has none, it lacks no nodes.
    beyond = Segment("b", "panes", 64, 70, 1, 1)
    assert table.arrive([[base, nodes, coarse], [beyond]]) == (base, beyond, nodes, coarse)


def test_panes_are_cut_without_a_copy_where_they_lie_together():
    rows = pa.table({PANE: [1, 2, 2, 5, 1]})
    assert panes_between(rows, 0) is rows
    assert panes_between(rows, 2, 6)[PANE].to_pylist() == [2, 2, 5]
    assert panes_between(rows, 1, 2)[PANE].to_pylist() == [1, 1]


def test_a_late_row_is_read_once_from_panes_and_from_nodes(tmp_path):
    channel = Channel(150, tmp_path)
    for pane in range(300):
        # Every epoch one row for each key of the newest pane, and one for a pane that nodes cover by now.
        late = [(pane - 100, 0)] if pane >= 100 else []
        _, rows = channel.step([*((pane, key) for key in range(5)), *late], pane - 148)
    assert {each.level for each in channel.segments} == {0, 8, 64}
    # The late rows of the last 51 panes are still to come.
    assert sum(rows["n"].to_pylist()) == 150 * 5 + 50
    assert rows.num_rows < 60 * 5
    assert len(channel.segments) < 40
