"""Unit costs for a cluster on paper, in two sets: fitted to published figures, and measured here ([002] §IV).

Fitted, in this order, and nothing else:
- 1,500 maps and 2,000 aggregates a second and processor (Fig. 7a, 7c) give what it costs to send a tuple,
  1/6,000 s, and to receive it and apply an operator, 1/2,000 s together;
- subquery-cluster 2.5 times operator-cluster (Fig. 7f) says how the latter divides: the more is spent on
  receiving, the larger the ratio. At 1/7,000 s an operator the ratio is a little less than published; below
  that the subquery-cluster would stand idle for the published 10 % or more. `EVEN_LINKS` and `EVEN_WORK` are
  what one would take without that fit: receiving costs as much as sending;
- subquery-cluster 5 times query-cluster (Fig. 7f) gives what an end of a connection takes: 0.52 % of a
  processor, a dummy tuple every 50 ms;
- a processor compares 100 M pairs a second in Fig. 7d; in Fig. 7b and 7e about 14 and 800 thousand, from
  400 t/s on 20 and 600 t/s on 16 processors. (Read as hundreds of tuples, their rates would agree with 7d.)

In Fig. 7d tuples cost nothing except their comparisons: 2,000 M a second on 20 processors take 8,165 t/s,
each to 4.5 processors; to receive them and take them up, at 1/2,000 s, would keep 92 % of all busy.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from penstock_lab.reproduce.rows import Row, row
from penstock_lab.simulate import Links, calibrate

__all__ = ["EVEN_LINKS", "EVEN_WORK", "PAPER", "Units", "cost_rows", "measured_here"]

_SEND = 1 / 6_000
_OPERATOR = 1 / 7_000
_RECEIVE = 1 / 2_000 - _OPERATOR
_CONNECTION = 0.0052
# How often a channel of Penstock sends every other one a batch: a compromise of latency and cost.
_EVERY = 0.1


@dataclass(frozen=True)
class Units:
    """Seconds for a tuple by kind of operator and for a comparison by figure, and costs of links.

    `work` and `links` are those of call records, `query_work` and `query_links` those of the integers that
    the query of Figure 8 reads; `probe` and `product_links` are those of the Cartesian product.
    """

    name: str
    work: Mapping[str, float]
    links: Links
    query_work: Mapping[str, float]
    query_links: Links
    probe: float
    product_links: Links
    compare: Mapping[str, float]


_KINDS = ("map", "filter", "join", "aggregate")
EVEN_LINKS = Links(0.0, _SEND, _SEND, _CONNECTION)
EVEN_WORK = dict.fromkeys(_KINDS, 1 / 2_000 - _SEND)
PAPER = Units(
    name="fitted",
    work=dict.fromkeys(_KINDS, _OPERATOR),
    links=Links(0.0, _SEND, _RECEIVE, _CONNECTION),
    query_work=dict.fromkeys(_KINDS, _OPERATOR),
    query_links=Links(0.0, _SEND, _RECEIVE, _CONNECTION),
    probe=0.0,
    product_links=Links(connection=_CONNECTION),
    compare={"7b": 7.3e-5, "7d": 1e-8, "7e": 1.25e-6},
)


def measured_here(*, quick: bool, seed: int, every: float = _EVERY) -> Units:
    """The costs of Penstock's own kernels on this machine, with a batch `every` this number of seconds."""
    costs = calibrate(quick=quick, seed=seed)
    links = Links.of(costs.record_links, every)
    return Units(
        name="measured here",
        work=asdict(costs.records),
        links=links,
        query_work=asdict(costs.integers),
        query_links=Links.of(costs.integer_links, every),
        probe=costs.probe,
        product_links=links,
        compare=dict.fromkeys(("7d", "7e"), costs.compare),
    )


def cost_rows(units: Units) -> list[Row]:
    """The unit costs, as rows of a report."""
    rows: list[Row] = []
    for schema, work, links in (
        ("call records", units.work, units.links),
        ("integers", units.query_work, units.query_links),
    ):
        handling = {"route": links.route, "send": links.send, "receive": links.receive}
        rows += [
            row("costs", f"{kind}, {units.name}", schema, "ns a tuple", 1e9 * seconds, None, "")
            for kind, seconds in {**work, **handling}.items()
        ]
        share = 100 * links.connection
        rows.append(row("costs", f"connection, {units.name}", schema, "% of a processor", share, None, ""))
    return [
        *rows,
        row("costs", f"probe, {units.name}", "product", "ns a tuple", 1e9 * units.probe, None, ""),
        *(
            row("costs", f"compare, {units.name}", f"Fig. {figure}", "ns a pair", 1e9 * seconds, None, "")
            for figure, seconds in units.compare.items()
        ),
    ]
