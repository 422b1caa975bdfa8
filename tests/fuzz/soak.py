"""Programs by the thousand: `python -m fuzz.soak --first 0 --count 20000 [--spark] [--record folder]`.

A record has one line for each program; a soak that is begun again with it goes on where it stopped.
"""

import argparse
import gc
import json
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.checking import Judge
from fuzz.coverage import features, table
from fuzz.draw_queries import draw
from fuzz.program import Program
from fuzz.reporting import report


@dataclass
class Soak:
    """What so many programs gave."""

    outcomes: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    covered: Counter = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)

    def add(self, program: Program, outcome: str, reason: str) -> None:
        self.outcomes[outcome] += 1
        if outcome in {"same", "needs Spark"}:
            self.covered.update(features(program))
        if outcome == "failed":
            self.failed.append(program.seed)
        elif reason:
            self.reasons[reason] += 1

    def __str__(self) -> str:
        lines = [f"{name}: {count}" for name, count in self.outcomes.most_common()]
        lines += [f"  {count} {reason}" for reason, count in self.reasons.most_common(40)]
        lines += ["covered by programs that ran:", table(self.covered)]
        return "\n".join([*lines, f"failed seeds: {self.failed}"])


def soak(first: int, count: int, judge: Judge, record: Path | None = None, *, shrink: bool = True) -> Soak:
    """Judge the programs of so many seeds; a failure is made small and printed."""
    found, known = Soak(), {}
    if record is not None and record.exists():
        known = {line["seed"]: line for line in map(json.loads, record.read_text().splitlines())}

    def judged(seed: int) -> tuple[Program, str, str]:
        program = draw(seed, verbatim=judge.verbatim(seed))
        if seed in known:
            return program, known[seed]["outcome"], known[seed]["reason"]
        return program, *judge.outcome(program)

    for program, outcome, reason in judge.each(judged, range(first, first + count)):
        found.add(program, outcome, reason)
        if program.seed in known:
            continue
        if outcome == "failed":
            print(report(program, judge, shrink=shrink), flush=True)  # noqa: T201 -- what a soak is for
        if record is not None:
            with record.open("a") as file:
                line = {"seed": program.seed, "outcome": outcome, "reason": reason}
                file.write(json.dumps(line) + "\n")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args()
    # Trees of expressions are garbage by the thousand and reach nothing: collections find little.
    gc.set_threshold(100_000, 20, 100)
    # Tasks run twice on purpose.
    logging.getLogger("penstock.run").setLevel(logging.ERROR)
    began = time.monotonic()
    judge = Judge.on_spark() if given.spark else Judge()
    found = soak(given.first, given.count, judge, given.record, shrink=not given.no_shrink)
    print(found)  # noqa: T201
    speed, each = given.count / (time.monotonic() - began), time.process_time() / given.count
    print(f"{speed:.1f} programs a second, {each:.3f} processor seconds each")  # noqa: T201


if __name__ == "__main__":
    main()
