"""How long do suspicious people talk? The query of (002, Figure 1) over generated call records.

Two streams, calls and numbers that somebody has reported, are joined by the caller; a map turns start and
end of a call into minutes; an aggregate counts calls of equal duration.

    python examples/call_durations.py --calls 50000 --channels 4
    python examples/call_durations.py --explain
"""

import argparse
from collections import Counter
from collections.abc import Sequence

import penstock as ps
from penstock_lab.workloads import CallRecords
from penstock_lab.workloads.calls import CALL_COLUMNS, SUSPECT_COLUMNS

EPOCHS = 5


def durations(records: CallRecords):
    """Calls of suspicious numbers, counted by minutes, in windows of ten minutes."""
    calls = ps.stream(
        "calls", CALL_COLUMNS, time="time", delay="1 second", source=ps.rows(epochs(records.table))
    )
    suspects = ps.stream("suspects", SUSPECT_COLUMNS, time="time", source=ps.rows(epochs(records.suspects)))
    return (
        calls.join(suspects, {"caller": "number"}, within="10 minutes")
        .select(minutes="(unix_micros(stop) - unix_micros(start)) div 60000000")
        .group_by("minutes")
        .window("10 minutes")
        .agg(calls=ps.count())
    )


def epochs(table):
    """A table in equal parts, each of which arrives in an epoch of its own."""
    size = -(-table.num_rows // EPOCHS)
    return [table.slice(number * size, size) for number in range(EPOCHS)]


def show(found: Counter) -> None:
    """A bar for each duration."""
    most = max(found.values(), default=1)
    for minutes, calls in sorted(found.items()):
        print(f"{minutes:>3} min {calls:>7,}  {'█' * round(40 * calls / most)}")
    print(f"{sum(found.values()):,} calls of suspicious numbers")


def main(arguments: Sequence[str] | None = None) -> Counter:
    """Run the query over generated calls until they end, and show the durations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=50_000, help="calls to generate")
    parser.add_argument("--channels", type=int, default=4, help="channels in all")
    parser.add_argument("--explain", action="store_true", help="show the plan instead of running it")
    options = parser.parse_args(arguments)
    query = durations(CallRecords(options.calls, seconds=3600, phones=20_000))
    found: Counter = Counter()
    if options.explain:
        print(query.explain(channels=options.channels))
        return found
    sink = ps.memory()
    query.start(sink, channels=options.channels).wait()
    for row in sink.table().to_pylist():
        found[row["minutes"]] += row["calls"]
    show(found)
    return found


if __name__ == "__main__":
    main()
