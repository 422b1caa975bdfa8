"""Explains the plan of a query: its graph, stages, routers, channels, and what each rewriting did."""

from collections.abc import Callable

from penstock.compile.explain_json import explain_json
from penstock.compile.explain_mermaid import explain_mermaid
from penstock.compile.explain_text import explain_text
from penstock.compile.outline import Outline, outline
from penstock.errors import UnknownForm
from penstock.query import Query

__all__ = ["FORMS", "explain"]

FORMS: dict[str, Callable[[Outline], str]] = {
    "text": explain_text,
    "mermaid": explain_mermaid,
    "json": explain_json,
}


def explain(query: Query, form: str = "text", strategy: str = "subquery", channels: int | None = None) -> str:
    """What will run, stage by stage, with the reason for every choice; `channels` is the total.

    >>> from penstock.query import stream
    >>> calls = stream("calls", "time timestamp, phone string, seconds int", time="time")
    >>> print(explain(Query((calls.where("seconds > 9"),))))
    graph
      output 0
      └─ where(`seconds` > 9)
         └─ calls
    streams
      calls: event time time, delay 0 seconds
    outputs
      output 0 ← calls: where(`seconds` > 9) (DuckDB on Arrow, as it is read)
        path: our own, no channel and no state; the tasks that read write the results
        why: Arrow from the source to the sink takes less processor time than Spark SQL
    optimisations
      where(`seconds` > 9) folded into the load balancer of calls towards output 0
    """
    if form not in FORMS:
        raise UnknownForm(form, FORMS)
    return FORMS[form](outline(query, strategy, channels))
