"""Sittings at the phone: calls of one number with less than five minutes between them, as sessions.

A keyed stateful function keeps the number of calls and the length of each number's sitting; when its timeout
passes, the sitting is over and is delivered. The function takes the calls of many numbers at once; the same,
call by call, is `sitting` below.

    python examples/sessions.py --calls 50000 --channels 4
    python examples/sessions.py --by-call
    python examples/sessions.py --explain
"""

import argparse
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from penstock_lab.workloads import CallRecords
from penstock_lab.workloads.calls import CALL_COLUMNS

EPOCHS = 5
STATE = {"calls": "bigint", "seconds": "double"}


class Sittings(ps.Processor):
    """Calls and the seconds spent on them in each run of calls that a timeout ends."""

    def step(self, block: ps.Block) -> ps.Outcome:
        """Sums over the runs of the block; the first run of a key goes on with the key's state."""
        seconds = pc.fill_null(block.rows["seconds"], 0).to_numpy()
        calls, talked = np.bincount(block.runs, ~block.fired), np.bincount(block.runs, seconds)
        begun = block.runs[block.first]
        calls[begun] += block.state["calls"].fill_null(0).to_numpy()
        talked[begun] += block.state["seconds"].fill_null(0).to_numpy()
        runs = pa.table({"calls": calls.astype(np.int64), "seconds": talked})
        over = np.flatnonzero(block.fired)
        return ps.Outcome(
            results=runs.take(pa.array(block.runs[over])),
            at=over,
            state=runs.take(pa.array(block.runs[block.last])),
            keep=~block.fired[block.last],
        )


def sitting(caller, time, call, state):  # noqa: ARG001 -- what every such function is given
    """The same, one call at a time."""
    if call is None:
        return ps.Visit(None, results=[state])
    before = state or {"calls": 0, "seconds": 0.0}
    return ps.Visit({"calls": before["calls"] + 1, "seconds": before["seconds"] + call["seconds"]})


def sittings(records: CallRecords, function=None):
    """The sittings of every number with more than one call."""
    source = ps.rows(epochs(records.table))
    calls = ps.stream("calls", CALL_COLUMNS, time="time", delay="1 second", source=source)
    calls = calls.select("caller", seconds="(unix_micros(stop) - unix_micros(start)) / 1000000")
    found = calls.group_by("caller").process(
        function or Sittings(), state=STATE, result=STATE, timeout="5 minutes"
    )
    return found.where("calls > 1")


def epochs(table):
    """A table in equal parts, each of which arrives in an epoch of its own."""
    size = -(-table.num_rows // EPOCHS)
    return [table.slice(number * size, size) for number in range(EPOCHS)]


def show(found: list[dict]) -> None:
    """The ten longest sittings."""
    for row in sorted(found, key=lambda each: -each["calls"])[:10]:
        minutes = row["seconds"] / 60
        print(f"{row['caller']}  until {row['time']:%H:%M:%S}  {row['calls']:>5,} calls, {minutes:,.0f} min")
    print(f"{len(found):,} sittings with more than one call")


def main(arguments: Sequence[str] | None = None) -> list[dict] | None:
    """Run the query over generated calls until they end, and show the longest sittings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=50_000, help="calls to generate")
    parser.add_argument("--channels", type=int, default=4, help="channels in all")
    parser.add_argument("--by-call", action="store_true", help="call the plain function for each call")
    parser.add_argument("--explain", action="store_true", help="show the plan instead of running it")
    options = parser.parse_args(arguments)
    records = CallRecords(options.calls, seconds=3600, phones=20_000)
    query = sittings(records, sitting if options.by_call else None)
    if options.explain:
        print(query.explain(channels=options.channels))
        return None
    sink = ps.memory()
    query.start(sink, channels=options.channels).wait()
    found = sink.table().to_pylist()
    show(found)
    return found


if __name__ == "__main__":
    main()
