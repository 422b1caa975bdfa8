import pyarrow as pa

from penstock.state import PANE, ChannelStore, Location, PaneTable, Segment, panes_between
from state.kinds import KEYS, Sums


class Channel:
    """One channel of windows, epoch after epoch, every epoch closing what it can."""

    def __init__(self, table, tmp_path):
        self.table, self.folder = table, Location(str(tmp_path))
        self.segments, self.opened = [], None

    def step(self, cells, opens):
        columns = {KEYS[0]: [key for _, key in cells], KEYS[1]: ["k"] * len(cells)}
        rows = pa.table({**columns, PANE: [pane for pane, _ in cells], "n": [1] * len(cells)})
        opened = self.table.open(ChannelStore(self.folder, "e", tuple(self.segments)), Sums(), self.opened)
        first = [each for each in (opened.first, min(pane for pane, _ in cells)) if each is not None]
        start = self.table.first_window_with(min(first))
        closing = range(start if self.opened is None else max(start, self.opened), opens)
        held = opened.held_by(closing)
        self.segments, self.opened = opened.close(rows, closing, opens), opens
        return closing, pa.concat_tables([rows, *(each.select(rows.column_names) for each in held)])


def test_long_windows_are_read_from_coarser_nodes(tmp_path):
    channel = Channel(PaneTable("panes", KEYS, span=150), tmp_path)
    for pane in range(300):
        closing, rows = channel.step([(pane, key) for key in range(5)], pane - 148)
    assert {each.level for each in channel.segments} == {0, 8, 64}
    assert len(closing) == 1
    assert sum(rows["n"].to_pylist()) == 150 * 5
    assert rows.num_rows < 45 * 5


def test_state_does_not_grow_once_windows_close(tmp_path):
    channel, sizes = Channel(PaneTable("panes", KEYS, span=20), tmp_path), []
    for pane in range(200):
        channel.step([(pane, key) for key in range(5)], pane - 18)
        sizes.append(sum(each.rows for each in channel.segments))
    assert max(sizes[150:]) <= max(sizes[50:100])


def test_nodes_around_panes_without_nodes_are_not_taken_to_cover_them(tmp_path):
    # Keys of the panes 24 to 31 come once each, so no nodes are worth keeping there; all around they are.
    table = PaneTable("panes", KEYS, span=200)
    channel = Channel(table, tmp_path)
    for epoch in range(34):
        cells = [(pane, pane if epoch == 3 else 0) for pane in range(8 * epoch, 8 * epoch + 8)]
        closing, rows = channel.step(cells, table.first_window_with(8 * epoch + 8))
        panes, n = rows[PANE].to_numpy(), rows["n"].to_numpy()
        for window in closing:
            wanted = min(200, window + 200) if window < 0 else 200
            assert n[(panes >= window) & (panes < window + 200)].sum() == wanted


def test_nodes_stay_until_keys_come():
    table = PaneTable("panes", KEYS, span=100)
    base, node = (Segment("s", "panes", 0, 8, 1, 1, level) for level in (0, 8))
    assert table.arrive([base, node], []) == (base, node)
    assert table.arrive([base, node], [base]) == (base, base)


def test_panes_are_cut_without_a_copy_where_they_lie_together():
    rows = pa.table({PANE: [1, 2, 2, 5, 1]})
    assert panes_between(rows, 0) is rows
    assert panes_between(rows, 2, 6)[PANE].to_pylist() == [2, 2, 5]
    assert panes_between(rows, 1, 2)[PANE].to_pylist() == [1, 1]


def test_windows_are_where_their_geometry_says():
    table = PaneTable("panes", span=3, stride=2)
    assert (table.kept_from(4), table.closed_below(4), table.first_window_with(8)) == (8, 9, 3)
