import io
from datetime import timedelta

import pytest
from rich.console import Console

from demo.epochs import SIX, epoch
from penstock.demo.panel import WIDTH, LineView, PanelView, Scene, _cells, line, panel, view
from penstock.demo.results import Area, Tally

AREAS = [
    Area(SIX, "12044:1070", 900, 31.5, 80.0, jam=False),
    Area(SIX, "12045:1070", 90, 8.5, 60.0, jam=True),
]


def scene(epochs, minutes=5, areas=()):
    tally = Tally()
    tally.take(epochs)
    return Scene(tally, epochs, SIX + timedelta(minutes=minutes), areas)


def drawn(what):
    console = Console(file=io.StringIO(), width=100)
    console.print(panel(what))
    return console.file.getvalue()


def test_the_panel_shows_figures_phases_and_areas():
    text = drawn(scene([epoch(0), epoch(3)], areas=AREAS))
    for part in (
        "06:03:00",
        "2 min",
        "2,000",
        "500 rows",
        "2.0 MB",
        "kernel 0.38 s",
        "12045:1070  queue ends here",
    ):
        assert part in text


def test_the_panel_can_be_drawn_before_the_first_epoch():
    assert "city clock" in drawn(scene([]))


def test_the_line_tells_the_same():
    text = " ".join(line(scene([epoch(0), epoch(3)])).split())
    assert text.startswith("city 06:03 epoch 3 2,000 rows 2,000 rows/s 80 results")
    assert text.endswith("frontier 2 min behind 4 late 2 rejected")


@pytest.mark.parametrize(("minutes", "behind"), [(3, "0 s"), (4, "60 s"), (9, "6 min")])
def test_the_frontier_is_behind_in_city_time(minutes, behind):
    assert scene([epoch(3)], minutes=minutes).behind == behind


@pytest.mark.parametrize("phases", [{"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, {"a": 1e-9, "b": 5.0}])
def test_the_bar_is_always_as_wide(phases):
    assert sum(_cells(phases).values()) == WIDTH


def pipe():
    return Console(file=io.StringIO(), width=200)


def test_a_pipe_gets_lines_and_a_terminal_the_panel():
    assert isinstance(view(pipe()), LineView)
    assert isinstance(view(Console(file=io.StringIO(), force_terminal=True)), PanelView)


def test_a_line_comes_now_and_then_and_at_the_end():
    console = pipe()
    with LineView(console, every=3600) as shown:
        for last in range(4):
            shown.show(scene([epoch(number) for number in range(last + 1)]))
    assert [
        "1,000 rows" in line or "4,000 rows" in line for line in console.file.getvalue().splitlines()
    ] == [True, True]


def test_an_epoch_is_told_once():
    console = pipe()
    with LineView(console, every=0) as shown:
        shown.show(scene([epoch(0)]))
        shown.show(scene([epoch(0)]))
    assert len(console.file.getvalue().splitlines()) == 1


def test_there_is_no_line_before_the_first_epoch():
    console = pipe()
    with LineView(console) as shown:
        shown.show(scene([]))
        assert console.file.getvalue() == ""


def test_the_panel_is_redrawn_in_place():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with PanelView(console) as shown:
        shown.show(scene([epoch(0)]))
        shown.show(scene([epoch(0), epoch(1)]))
    assert "06:01:00" in console.file.getvalue()
