"""Cloned phones: two calls of one number so far apart that nobody can have travelled between them.

The calls are joined with themselves by the caller within a minute; pairs whose distance in space is too
large for their distance in time are frauds (the self-join of 002, section IV.B.2). The generated records
know their frauds, so that the answer can be checked.

    python examples/fraud.py --calls 50000 --channels 4
    python examples/fraud.py --explain
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import penstock as ps
from penstock_lab.workloads import CallRecords
from penstock_lab.workloads.calls import CALL_COLUMNS

EPOCHS = 5
SPEED = 100  # metres a second; no phone in these records moves faster than 30
METRES = "sqrt(({0}x{1} - {2}x{3}) * ({0}x{1} - {2}x{3}) + ({0}y{1} - {2}y{3}) * ({0}y{1} - {2}y{3}))"


@dataclass(frozen=True)
class Verdict:
    """Pairs found, planted frauds that are among them, all planted ones, and pairs without any clone."""

    pairs: int
    found: int
    planted: int
    wrong: int


def frauds(records: CallRecords):
    """Pairs of calls by one number that only a clone explains, with their distance in space and time."""
    source = ps.rows(epochs(records.table))
    calls = ps.stream("calls", CALL_COLUMNS, time="time", delay="1 second", source=source)
    calls = calls.select("caller", "x", "y", at="time")
    metres = METRES.format("l.", "", "r.", "")
    pairs = calls.join(
        calls,
        "caller",
        within="1 minute",
        condition=f"l.at < r.at AND {metres} > {SPEED} * (unix_micros(r.at) - unix_micros(l.at)) / 1000000",
        suffixes=("_1", "_2"),
    )
    return pairs.select(
        "caller",
        "at_1",
        "at_2",
        kilometres=f"{METRES.format('', '_1', '', '_2')} / 1000",
        seconds="(unix_micros(at_2) - unix_micros(at_1)) / 1000000",
    )


def epochs(table):
    """A table in equal parts, each of which arrives in an epoch of its own."""
    size = -(-table.num_rows // EPOCHS)
    return [table.slice(number * size, size) for number in range(EPOCHS)]


def judge(found: list[dict], truth: list[dict]) -> Verdict:
    """What was found against what was planted."""
    pairs = {(row["caller"], row["at_1"], row["at_2"]) for row in found}
    planted = {(row["caller"], row["real"], row["clone"]) for row in truth}
    clones = {(caller, clone) for caller, _, clone in planted}
    wrong = [pair for pair in pairs if not {(pair[0], pair[1]), (pair[0], pair[2])} & clones]
    return Verdict(len(found), len(pairs & planted), len(planted), len(wrong))


def show(found: list[dict], verdict: Verdict) -> None:
    """The closest pair in time of the first few numbers, and how many frauds were found."""
    closest = {row["caller"]: row for row in sorted(found, key=lambda each: -each["seconds"])}
    for row in sorted(closest.values(), key=lambda each: each["at_1"])[:10]:
        print(
            f"{row['caller']}  {row['at_1']:%H:%M:%S} and {row['at_2']:%H:%M:%S}: "
            f"{row['kilometres']:.0f} km in {row['seconds']:.0f} s"
        )
    print(
        f"{verdict.found:,} of {verdict.planted:,} planted frauds found, in {verdict.pairs:,} pairs "
        f"of calls; {verdict.wrong:,} pairs without a clone"
    )


def main(arguments: Sequence[str] | None = None) -> Verdict | None:
    """Run the query over generated calls until they end, and compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=50_000, help="calls to generate")
    parser.add_argument("--channels", type=int, default=4, help="channels in all")
    parser.add_argument("--explain", action="store_true", help="show the plan instead of running it")
    options = parser.parse_args(arguments)
    records = CallRecords(options.calls, seconds=600, phones=20_000)
    query = frauds(records)
    if options.explain:
        print(query.explain(channels=options.channels))
        return None
    sink = ps.memory()
    query.start(sink, channels=options.channels).wait()
    found = sink.table().to_pylist()
    verdict = judge(found, records.frauds.to_pylist())
    show(found, verdict)
    return verdict


if __name__ == "__main__":
    main()
