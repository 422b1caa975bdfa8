"""A windowed aggregation in words: panes, the two sub-queries, and why they are formed where they are."""

from collections.abc import Sequence

from penstock.aggregates.partials import Partial
from penstock.expressions.durations import words
from penstock.operators.windows.kernel import WindowKernel
from penstock.operators.windows.shapes import Cumulation, WindowValue
from penstock.routing.pane_windows import CumulatingPanes, PaneWindows, SlidingPanes
from penstock.state.pane_nodes import lengths

__all__ = ["window_words"]


def window_words(kernel: WindowKernel, windows: Sequence[WindowValue]) -> list[str]:
    """What the channels of an aggregation do, with the reason for every choice."""
    return [*_panes(kernel, windows), *_late(kernel), *_pane_query(kernel), *_window_query(kernel)]


def _panes(kernel: WindowKernel, windows: Sequence[WindowValue]) -> list[str]:
    pane = words(kernel.grid.pane)
    if len(windows) == 1:
        lines = [f"panes: {pane} = {_cut(windows[0])}; {_windows_of(kernel.windows[0])}"]
    else:
        lines = [f"panes: {pane}, the longest that no edge of any of {len(windows)} windows cuts; read once"]
        lines += [
            f"  {each}: {_windows_of(over)}" for each, over in zip(windows, kernel.windows, strict=True)
        ]
    if all(each.longest == 1 and not each.gaps for each in kernel.windows):
        lines.append("  windows do not overlap: a pane is a window, and closing it needs no merge of panes")
    elif all(each.gaps for each in kernel.windows):
        lines.append("  windows do not touch: tuples between them are in none")
    elif not any(each.overlapping for each in kernel.windows):
        lines.append("  windows of one size do not overlap: a window is one grouping of its panes")
    else:
        copies = sum(map(_copies, kernel.windows))
        lines.append(f"  each tuple is aggregated once instead of in {copies} overlapping windows")
    if nodes := lengths(max(each.longest for each in kernel.windows)):
        names = ", ".join(str(length) for length in nodes)
        lines.append(
            f"  nodes of {names} panes are kept while windows close few at a time: fewer rows to merge"
        )
    return lines


def _cut(window: WindowValue) -> str:
    if isinstance(window, Cumulation):
        return f"step of windows that grow to {words(window.size)}"
    return f"gcd(size {words(window.size)}, slide {words(window.slide)})"


def _windows_of(windows: PaneWindows) -> str:
    if isinstance(windows, CumulatingPanes):
        return f"windows grow by {_panes_of(windows.step)}, {windows.steps} start together"
    assert isinstance(windows, SlidingPanes)
    return f"a window is {_panes_of(windows.span)} and starts every {windows.stride}"


def _copies(windows: PaneWindows) -> int:
    """The most windows that a tuple is in."""
    if isinstance(windows, CumulatingPanes):
        return windows.steps
    assert isinstance(windows, SlidingPanes)
    return -(-windows.span // windows.stride)


def _late(kernel: WindowKernel) -> list[str]:
    """What is not as usual: a tuple counts in its open windows, and each window is delivered once."""
    lines = []
    if kernel.late == "drop":
        lines.append("  a tuple is late as soon as one of its windows is closed, and then counts in none")
    if kernel.lateness:
        lines.append(
            f"  windows are corrected for {words(kernel.lateness)} after they close; panes are kept as long"
        )
    if kernel.early is not None:
        often = words(kernel.early)
        lines.append(
            f"  windows are delivered early, each {often} of event time and when one closes, if they changed"
        )
    return lines


def _panes_of(count: int) -> str:
    return "1 pane" if count == 1 else f"{count} panes"


def _pane_query(kernel: WindowKernel) -> list[str]:
    keys = [key.name for key in kernel.keys]
    if kernel.forms == ("combined",):
        where = "Spark SQL on the map side: some partials only Spark can form"
    elif kernel.forms == ("rows",):
        who = dict.fromkeys(each.accumulated.reason for each in kernel.partial_columns if each.accumulated)
        where = f"Arrow in the channel: {' and '.join(who)} need the rows themselves"
    else:
        where = "Arrow on the map side; raw rows instead where that hardly shrinks them"
    lines = [f"pane-level query: {where}", f"  GROUP BY {', '.join([*keys, 'pane'])}", *_hot_keys(kernel)]
    return lines + [f"  {_columns(partial)} := {partial.source}" for partial in kernel.partial_columns]


def _hot_keys(kernel: WindowKernel) -> list[str]:
    if not kernel.keys or kernel.forms != ("rows",):
        return []
    return ["  hot keys: whole, since not every aggregate says split = True"]


def _columns(partial: Partial) -> str:
    return ", ".join(partial.columns)


def _window_query(kernel: WindowKernel) -> list[str]:
    how = (
        "suffix ⊕ core ⊕ prefix over shared panes, never a subtraction"
        if any(each.overlapping for each in kernel.windows)
        else "one grouping"
    )
    sketches = [partial for partial in kernel.partial_columns if partial.kind.summary]
    return [
        f"window-level query (vectorised, in the channel): {how}",
        *(f"  {_columns(partial)}: {partial.kind.summary}" for partial in sketches),
        *(f"  {result.name} := {result.finish}" for result in kernel.results),
    ]
