"""A windowed aggregation in words: panes, the two sub-queries, and why they are formed where they are."""

from penstock.aggregates.partials import Partial
from penstock.expressions.durations import words
from penstock.operators.windows.kernel import WindowKernel
from penstock.state.pane_nodes import lengths

__all__ = ["window_words"]


def window_words(kernel: WindowKernel) -> list[str]:
    """What the channels of an aggregation do, with the reason for every choice."""
    return [*_panes(kernel), *_pane_query(kernel), *_window_query(kernel)]


def _panes(kernel: WindowKernel) -> list[str]:
    shape = kernel.shape
    cut = f"panes: {words(shape.pane)} = gcd(size {words(shape.size)}, slide {words(shape.slide)})"
    lines = [f"{cut}; a window is {_panes_of(shape.span)} and starts every {shape.stride}"]
    if shape.tumbling:
        lines.append("  windows do not overlap: a pane is a window, and closing it needs no merge of panes")
    else:
        copies = -(-shape.size // shape.slide)
        lines.append(f"  each tuple is aggregated once instead of in {copies} overlapping windows")
    if nodes := lengths(shape.span):
        names = ", ".join(str(length) for length in nodes)
        lines.append(
            f"  nodes of {names} panes are kept while windows close few at a time: fewer rows to merge"
        )
    return lines


def _panes_of(count: int) -> str:
    return "1 pane" if count == 1 else f"{count} panes"


def _pane_query(kernel: WindowKernel) -> list[str]:
    keys = [key.name for key in kernel.keys]
    if kernel.forms == ("combined",):
        where = "Spark SQL with the combine on the map side: some partials only Spark can form"
    elif kernel.forms == ("rows",):
        who = dict.fromkeys(each.accumulated.reason for each in kernel.partial_columns if each.accumulated)
        where = f"Arrow in the channel: {' and '.join(who)} need the rows themselves"
    else:
        where = "Spark SQL with the combine on the map side; raw rows instead while it hardly shrinks them"
    lines = [f"pane-level query: {where}", f"  GROUP BY {', '.join([*keys, 'pane'])}", *_hot_keys(kernel)]
    return lines + [f"  {_columns(partial)} := {partial.source}" for partial in kernel.partial_columns]


def _hot_keys(kernel: WindowKernel) -> list[str]:
    if not kernel.keys or kernel.forms != ("rows",):
        return []
    if kernel.splits:
        return ["  hot keys: formed by sub-keys in several channels while channels are uneven, merged in one"]
    return ["  hot keys: whole, since not every aggregate says split = True"]


def _columns(partial: Partial) -> str:
    return ", ".join(partial.columns)


def _window_query(kernel: WindowKernel) -> list[str]:
    how = (
        "one grouping"
        if kernel.shape.tumbling
        else "suffix ⊕ core ⊕ prefix over shared panes, never a subtraction"
    )
    sketches = [partial for partial in kernel.partial_columns if partial.kind.summary]
    return [
        f"window-level query (vectorised, in the channel): {how}",
        *(f"  {_columns(partial)}: {partial.kind.summary}" for partial in sketches),
        *(f"  {result.name} := {result.finish}" for result in kernel.results),
    ]
