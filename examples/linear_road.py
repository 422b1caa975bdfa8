"""Linear Road: variable tolls, accident warnings, balances and expenditures on congested expressways.

Cars report every 30 seconds where they are. Whoever enters a segment is told its toll, which depends on how
many cars were there and how slow they were, and is warned of accidents ahead; accounts are charged and can be
asked. The traffic is generated, and every answer is compared with batch SQL.

    python examples/linear_road.py --expressways 1 --seconds 600 --channels 4
    python examples/linear_road.py --explain
"""

import argparse
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from penstock_lab.linear_road import Traffic, Truth, linear_road
from penstock_lab.linear_road.validator import ANSWERS

EPOCHS = 5


def epochs(table):
    """A table in equal parts, each of which arrives in an epoch of its own."""
    size = -(-table.num_rows // EPOCHS)
    return [table.slice(number * size, size) for number in range(EPOCHS)]


def show(tables: dict[str, pa.Table], verdicts) -> None:
    """The dearest segments, and whether the answers are right."""
    tolls = tables["tolls"].group_by(["xway", "dir", "seg"]).aggregate([("toll", "max"), ("lav", "min")])
    dearest = tolls.filter(pc.greater(tolls["toll_max"], 0)).sort_by([("toll_max", "descending")])
    for row in dearest.slice(0, 10).to_pylist():
        way = "west" if row["dir"] else "east"
        print(
            f"expressway {row['xway']} {way}, mile {row['seg']:>2}: toll up to {row['toll_max']:,}, "
            f"down to {row['lav_min']} miles an hour"
        )
    for each in verdicts:
        print(f"{each.name}: {each.delivered:,} answers, {each.missing:,} missing, {each.wrong:,} wrong")


def main(arguments: Sequence[str] | None = None):
    """Run the benchmark's queries over generated traffic until it ends, and compare with batch SQL."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--expressways", type=int, default=1, help="expressways to generate")
    parser.add_argument(
        "--seconds", type=int, default=600, help="seconds of traffic, at half past the first hour"
    )
    parser.add_argument("--channels", type=int, default=4, help="channels in all")
    parser.add_argument("--explain", action="store_true", help="show the plan instead of running it")
    options = parser.parse_args(arguments)
    traffic = Traffic(options.expressways, seconds=options.seconds, begin=5400, accidents=30)
    road = linear_road(ps.rows(epochs(traffic.reports)), ps.rows([traffic.history]))
    if options.explain:
        print(road.query.explain(channels=options.channels))
        return None
    sinks = {name: ps.memory() for name in ANSWERS}
    road.query.start(*sinks.values(), channels=options.channels).wait()
    tables = {name: sink.table() for name, sink in sinks.items()}
    with Truth(traffic.reports, traffic.history) as truth:
        verdicts = [truth.verdict(name, table) for name, table in tables.items()]
    show(tables, verdicts)
    return verdicts


if __name__ == "__main__":
    main()
