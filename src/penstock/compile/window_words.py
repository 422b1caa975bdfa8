"""A windowed aggregation in words: panes, the two sub-queries, and why they are formed where they are."""

from penstock.compile.finishes import Finish, Finished, Taken
from penstock.compile.lifts import Accumulated
from penstock.compile.partials import Partial
from penstock.compile.plan import WindowPlan, compile_aggregation
from penstock.panes import Kind, Sketch
from penstock.panes.nodes import lengths
from penstock.query import Derived, words

__all__ = ["window_words"]


def window_words(relation: Derived) -> list[str]:
    """What the channels of an aggregation do, with the reason for every choice."""
    plan = compile_aggregation(relation)
    return [*_panes(plan), *_pane_query(plan), *_window_query(plan)]


def _panes(plan: WindowPlan) -> list[str]:
    shape = plan.shape
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


def _pane_query(plan: WindowPlan) -> list[str]:
    keys = [key.name for key in plan.keys]
    if plan.combinings == ("map",):
        where = "Spark SQL with the combine on the map side: some partials only Spark can form"
    elif plan.combinings == ("channel",):
        where = "Arrow in the channel: user-defined aggregates need the rows themselves"
    else:
        where = "Spark SQL with the combine on the map side; raw rows instead while it hardly shrinks them"
    lines = [f"pane-level query: {where}", f"  GROUP BY {', '.join([*keys, 'pane'])}", *_hot_keys(plan)]
    return lines + [f"  {_columns(partial)} := {_source(partial)}" for partial in plan.partials]


def _hot_keys(plan: WindowPlan) -> list[str]:
    if not plan.keys or plan.combinings != ("channel",):
        return []
    if plan.splits:
        return ["  hot keys: formed by sub-keys in several channels while channels are uneven, merged in one"]
    return ["  hot keys: whole, since an aggregate says split = False"]


def _columns(partial: Partial) -> str:
    return ", ".join(partial.columns)


def _source(partial: Partial) -> str:
    if isinstance(partial.lift, Accumulated):
        aggregate = partial.lift.aggregate
        return f"{aggregate!r}.accumulate"
    return ", ".join(partial.combine)


def _window_query(plan: WindowPlan) -> list[str]:
    how = (
        "one grouping"
        if plan.shape.tumbling
        else "suffix ⊕ core ⊕ prefix over shared panes, never a subtraction"
    )
    sketches = [partial for partial in plan.partials if isinstance(partial.kind, Sketch)]
    return [
        f"window-level query (vectorised, in the channel): {how}",
        *(f"  {_columns(partial)}: {_summary(partial.kind)}" for partial in sketches),
        *(f"  {result.name} := {_finish(result.finish)}" for result in plan.results),
    ]


def _summary(kind: Kind) -> str:
    return (type(kind).__doc__ or "").splitlines()[0]


def _finish(finish: Finish) -> str:
    if isinstance(finish, Finished):
        return f"{finish.aggregate!r}.finish"
    return finish.column if isinstance(finish, Taken) else str(finish)
