import io

from rich.console import Console

from demo.epochs import SIX, epoch
from penstock.demo.panel import Scene
from penstock.demo.tally import Tally
from penstock.demo.view import LineView, PanelView, view


def scene(*epochs):
    tally = Tally()
    tally.take(epochs)
    return Scene(tally, epochs, SIX)


def pipe():
    return Console(file=io.StringIO(), width=200)


def test_a_pipe_gets_lines_and_a_terminal_the_panel():
    assert isinstance(view(pipe()), LineView)
    assert isinstance(view(Console(file=io.StringIO(), force_terminal=True)), PanelView)


def test_a_line_comes_now_and_then_and_at_the_end():
    console = pipe()
    with LineView(console, every=3600) as shown:
        for last in range(4):
            shown.show(scene(*(epoch(number) for number in range(last + 1))))
    assert [
        "1,000 rows" in line or "4,000 rows" in line for line in console.file.getvalue().splitlines()
    ] == [True, True]


def test_an_epoch_is_told_once():
    console = pipe()
    with LineView(console, every=0) as shown:
        shown.show(scene(epoch(0)))
        shown.show(scene(epoch(0)))
    assert len(console.file.getvalue().splitlines()) == 1


def test_there_is_no_line_before_the_first_epoch():
    console = pipe()
    with LineView(console) as shown:
        shown.show(scene())
        assert console.file.getvalue() == ""


def test_the_panel_is_redrawn_in_place():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with PanelView(console) as shown:
        shown.show(scene(epoch(0)))
        shown.show(scene(epoch(0), epoch(1)))
    assert "06:01:00" in console.file.getvalue()
