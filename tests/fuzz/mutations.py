"""Seeded bugs: one change in one function of the product, and whether random programs find it.

A mutant changes one expression in a function that the programs execute: a comparison, a bound, a condition,
the order of two columns. It lives in the memory of one process: the module is compiled from its changed tree
when it is imported. A program finds it if its rows differ from the oracle's, if it crashes, or if it is
refused and was not before. What survives may be equivalent: then the change has no effect on rows, and a
person has to judge.

    python -m fuzz.mutations --seed 1 --mutants 60 --minutes 15
"""

import argparse
import ast
import copy
import importlib
import importlib.machinery
import importlib.util
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

__all__ = ["Mutant", "Verdict", "covered", "judged", "mutants", "outcome", "soak", "watched"]

ROOT = Path(__file__).parents[2] / "src" / "penstock"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "kernels": ("operators", "aggregates", "state"),
    "compiler": ("compile", "expressions/conditions.py", "expressions/pairs.py", "functions/translation.py"),
    "exchange": (
        "distribution",
        "operators/exchange.py",
        "routing/arrays.py",
        "routing/hash_pair.py",
        "routing/join_grid.py",
        "routing/join_spread.py",
        "routing/ring.py",
        "routing/spark_hash.py",
        "routing/spread.py",
        "routing/window_channels.py",
        "routing/window_ids.py",
        "runtime/dataflow",
        "runtime/epoch.py",
        "runtime/epochs.py",
        "runtime/frontier.py",
        "runtime/graph.py",
        "runtime/levels.py",
        "runtime/moving.py",
        "runtime/sampling.py",
        "runtime/spark/entries.py",
        "runtime/stage.py",
        "state/moving.py",
        "state/placing.py",
    ),
    "scoping": ("query/sql",),
}
"""The rooms of the product in which bugs are seeded; each group is drawn equally often."""

# They speak to people, or decide on time and place alone: no row depends on them.
_WITHOUT_ROWS = frozenset(
    {
        *(
            "__repr__",
            "__str__",
            "__len__",
            "words",
            "route_words",
            "texts",
            "source",
            "explain",
            "kind",
            "label",
        ),
        *(
            "meaning",
            "fingerprint",
            "refused",
            "why_last",
            "why_single",
            "detail",
            "error_bound",
            "measured_error",
        ),
        *("resources", "channel_work", "folded", "living_bytes", "partly_late", "ends", "_ends", "_measured"),
        *("_counted", "_counts", "_weights", "_tuples", "clean_up", "forget", "release"),
        *("SteadyTime.read", "StageRunner.deals", "StageRunner.may_split", "StageRunner.may_rebatch"),
        *("_note", "_shared_notes"),
    }
)
_SPEAKING = (
    *("cost_meter.py", "names.py", "poison.py"),
    *("compaction.py", "view.py", "segments.py", "storage.py"),
)
_COMPARED: Mapping[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Mapping[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.FloorDiv: ast.Mult,
}
_NAMED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "logical_and": "logical_or",
    "and_": "or_",
    "and_kleene": "or_kleene",
    "less": "less_equal",
    "argmin": "argmax",
    "argmax": "argmin",
}
_WORDS = {"left": "right", "right": "left", "ascending": "descending", "inner": "full", "earliest": "latest"}


# -- mutants -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A change of a file: the number of a node in its tree, what kind of change, and how the text changes."""

    file: str
    function: str
    begins: int
    line: int
    node: int
    kind: str
    before: str
    after: str

    @property
    def module(self) -> str:
        """The name by which the file is imported."""
        parts = Path(self.file).with_suffix("").parts
        return ".".join(["penstock", *(parts[:-1] if parts[-1] == "__init__" else parts)])

    def code(self) -> CodeType:
        """The file with the change, compiled."""
        path = ROOT / self.file
        tree = ast.parse(path.read_text())
        node = list(ast.walk(tree))[self.node]
        dict(_changes(node))[self.kind]()
        return compile(ast.fix_missing_locations(tree), str(path), "exec")

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.kind}: {self.before}  ->  {self.after}"


def mutants(file: str, lines: set[int]) -> list[Mutant]:
    """Every change in functions of a file on one of these lines."""
    source = (ROOT / file).read_text()
    tree = ast.parse(source)
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    found = []
    for function, name in _functions(tree):
        for node in _within(function):
            if getattr(node, "lineno", None) not in lines:
                continue
            for kind, _ in _changes(node):
                changed = copy.deepcopy(node)
                dict(_changes(changed))[kind]()
                begins = min(each.lineno for each in [function, *function.decorator_list])
                number, before, after = numbers[id(node)], _shown(node), _shown(changed)
                if isinstance(node, ast.Constant):
                    # A number alone does not tell which of several is meant.
                    before = f"{before} in {source.splitlines()[node.lineno - 1].strip()}"
                found.append(Mutant(file, name, begins, node.lineno, number, kind, before, after))
    return [each for each in found if each.before != each.after]


def _shown(node: ast.AST) -> str:
    """A node as text; of a branch or a loop its head alone."""
    text = ast.unparse(ast.fix_missing_locations(node))
    return text.splitlines()[0][:160]


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[Any, str]]:
    """The outermost functions that rows may depend on, with their names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and _WITHOUT_ROWS.isdisjoint(
            {node.name, f"{prefix}{node.name}"}
        ):
            yield node, f"{prefix}{node.name}"


def _within(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without what is only for people or for type checkers."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        checks = isinstance(node, ast.keyword) and node.arg == "strict"
        if checks or isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr)):
            continue
        yield node
        if isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value else []
        elif isinstance(node, ast.FunctionDef):
            waiting += node.body
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            # The order of types says nothing.
            waiting += node.args[:1]
        else:
            waiting += list(ast.iter_child_nodes(node))


def _changes(node: Any) -> Iterator[tuple[str, Callable[[], None]]]:  # noqa: C901, PLR0912 -- a branch per kind
    """What can be changed in a node, each by a name; the change is made in place when it is called."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        yield "comparison", lambda: node.ops.__setitem__(0, _COMPARED[type(node.ops[0])]())
    elif isinstance(node, ast.BoolOp):
        yield (
            "and for or",
            lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And()),
        )
        yield "first condition dropped", lambda: setattr(node, "values", [node.values[-1]] * 2)
        yield "last condition dropped", lambda: setattr(node, "values", [*node.values[:-1], node.values[0]])
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED and not _text(node):
        yield "operator", lambda: setattr(node, "op", _COMPUTED[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        inner = ast.UnaryOp(node.op, node.operand)
        yield "not dropped", lambda: setattr(node, "operand", inner)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "the other truth", lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) < 3:
        yield "off by one", lambda: setattr(node, "value", node.value + 1)
    elif isinstance(node, ast.Constant) and node.value in _WORDS:
        yield "another word", lambda: setattr(node, "value", _WORDS[node.value])
    elif isinstance(node, ast.If):
        yield "branch always taken", lambda: setattr(node, "test", ast.Constant(value=True))
        if not isinstance(node.body[-1], ast.Raise):
            # Programs that are refused are not drawn.
            yield "branch removed", lambda: setattr(node, "test", ast.Constant(value=False))
    elif isinstance(node, ast.IfExp):
        yield "other branch", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "filter dropped", lambda: setattr(node, "ifs", [])
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield "swapped", node.elts.reverse
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _checks(node.value):
        yield "statement removed", lambda: setattr(node, "value", ast.Constant(value=None))


def _checks(call: ast.Call) -> bool:
    """Whether a call only refuses: as with a branch that raises, programs that are refused are not drawn."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name.lstrip("_").startswith("check")


def _calls(node: ast.Call) -> Iterator[tuple[str, Callable[[], None]]]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name in _NAMED:
        attribute = "id" if isinstance(node.func, ast.Name) else "attr"
        yield "another function", lambda: setattr(node.func, attribute, _NAMED[name])
    plain = len(node.args) == 2 and not any(isinstance(each, ast.Starred) for each in node.args)
    if plain and name not in {"isinstance", "getattr", "setattr", "range", "zip", "cast"}:
        yield "arguments swapped", node.args.reverse


def _text(node: ast.BinOp) -> bool:
    """Whether it puts texts together."""
    sides = (node.left, node.right)
    return any(isinstance(each, (ast.JoinedStr, ast.List, ast.Tuple, ast.Set)) for each in sides) or any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) for each in sides
    )


class _Import(importlib.machinery.SourceFileLoader):
    """Loads a module from changed code."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(ROOT / mutant.file))
        self.mutant = mutant

    def get_code(self, _name: str) -> CodeType:
        return self.mutant.code()

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """Be asked before all other finders."""
        return importlib.util.spec_from_loader(name, self) if name == self.mutant.module else None


# -- programs ------------------------------------------------------------------------------------------

_NO_DIFFERENCE = frozenset({"Refused", "RefusedLate", "Unspeakable", "NeedsSpark", "OracleFailed"})


def outcome(seed: int) -> str:
    """What a random program says of the product: `ok`, why nothing can be said, or what is wrong."""
    from fuzz.checking import check
    from fuzz.draw_queries import draw

    try:
        check(draw(seed))
    except Exception as error:  # noqa: BLE001 -- whatever a mutant does
        name = type(error).__name__
        kind = name if name in _NO_DIFFERENCE else "wrong"
        return f"{kind}: {name}: {' '.join(str(error).split())[:200]}"
    return "ok"


@dataclass(frozen=True)
class Covered:
    """What programs executed: lines by file, functions (file, first line) by program, and their outcomes."""

    lines: dict[str, set[int]]
    functions: dict[int, set[tuple[str, int]]]
    outcomes: dict[int, str]


def covered(seeds: Sequence[int], entry: Callable[[int], str] = outcome) -> Covered:
    """Run programs and watch which functions of the product they execute."""
    files = {str(ROOT / each): each for each in _files()}
    lines: dict[str, set[int]] = {}
    functions: dict[int, set[tuple[str, int]]] = {}
    outcomes: dict[int, str] = {}
    watched: dict[CodeType, int] = {}
    mine: set[tuple[str, int]] = set()

    def line(frame: FrameType, _event: str, _argument: Any) -> Any:
        lines[files[frame.f_code.co_filename]].add(frame.f_lineno)
        return line

    def call(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        file = files.get(code.co_filename)
        if file is None:
            return None
        mine.add((file, code.co_firstlineno))
        watched[code] = watched.get(code, 0) + 1
        lines.setdefault(file, set())
        # To watch every line of every call would take minutes.
        return line if watched[code] <= 20 else None

    for seed in seeds:
        mine = functions[seed] = set()
        sys.settrace(call)
        try:
            outcomes[seed] = entry(seed)
        finally:
            sys.settrace(None)
    return Covered(lines, functions, outcomes)


def _files() -> list[str]:
    found = []
    for places in GROUPS.values():
        for place in places:
            path = ROOT / place
            paths = sorted(path.rglob("*.py")) if path.is_dir() else [path]
            found += [str(each.relative_to(ROOT)) for each in paths if each.is_file()]
    return [each for each in dict.fromkeys(found) if not each.endswith(_SPEAKING) and "explain" not in each]


def _group(file: str) -> str:
    """The group of a file: the one that names it most closely."""
    fitting = [
        (len(place), group)
        for group, places in GROUPS.items()
        for place in places
        if file == place or file.startswith(f"{place}/")
    ]
    return max(fitting)[1]


def drawn(seed: int, seen: Covered, count: int) -> list[Mutant]:
    """So many mutants of lines that were executed, each group as often as any other."""
    rng = Random(seed)
    by_group: dict[str, list[Mutant]] = {group: [] for group in GROUPS}
    for file in _files():
        by_group[_group(file)] += mutants(file, seen.lines.get(file, set()))
    for each in by_group.values():
        rng.shuffle(each)
    found: list[Mutant] = []
    while len(found) < count and any(by_group.values()):
        for each in by_group.values():
            if each and len(found) < count:
                found.append(_not_twice(each, found))
    return found


def _not_twice(waiting: list[Mutant], found: list[Mutant]) -> Mutant:
    """The next one, of another function than those before if there is one."""
    taken = {(each.file, each.function) for each in found}
    place = next((at for at, each in enumerate(waiting) if (each.file, each.function) not in taken), 0)
    return waiting.pop(place)


# -- verdicts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: after how many programs that execute its function it was found, and how."""

    mutant: Mutant
    found: bool
    ran: int
    seed: int | None
    why: str
    seconds: float


def judged(
    mutant: Mutant,
    seen: Covered,
    seconds: float,
    entry: Callable[[int], str] = outcome,
    fresh: Sequence[int] = (),
) -> Verdict:
    """Let programs look for a mutant for so many seconds of processor time, in a process of its own.

    Only those that execute its function can find it; those that said nothing before come last. Then come
    `fresh` ones, of which nothing is known: of one that is refused `entry` is asked again without the mutant.
    """
    seeds = [seed for seed, each in seen.functions.items() if (mutant.file, mutant.begins) in each]
    seeds.sort(key=lambda seed: seen.outcomes[seed] != "ok")

    def look(write: Callable[[dict[str, Any]], None]) -> None:
        _forget()
        sys.meta_path.insert(0, _Import(mutant))
        doubtful: list[int] = []
        for ran, seed in enumerate([*seeds, *fresh], 1):
            told = entry(seed)
            before = seen.outcomes.get(seed, "Refused")
            refused = told.startswith("Refused") and not before.startswith("Refused")
            found = refused or told.startswith("wrong")
            seconds_taken = time.process_time()
            if told.startswith("Refused") and seed not in seen.outcomes:
                doubtful.append(seed)
            write(
                {
                    "found": found,
                    "ran": ran,
                    "seed": seed,
                    "why": told,
                    "seconds": seconds_taken,
                    "doubtful": doubtful[:_MOST_DOUBTFUL],
                }
            )
            if found or seconds_taken > seconds:
                return

    told, ended = _apart(look, seconds + _LONGEST_PROGRAM)
    last = told[-1] if told else {"found": False, "ran": 0, "seed": None, "why": "", "seconds": 0.0}
    if ended != "ended":
        # A program did not come to its end.
        last = {**last, "found": True, "why": ended}
    doubtful = last.pop("doubtful", [])
    if not last["found"]:
        taken = next((each for each in doubtful if not _refused_anyway(each, entry)), None)
        last |= {} if taken is None else {"found": True, "seed": taken, "why": "Refused"}
    return Verdict(mutant, **last)


_MOST_DOUBTFUL = 15
"""So many programs that are refused, maybe without a mutant too, are tried without it."""


def _refused_anyway(seed: int, entry: Callable[[int], str]) -> bool:
    told, _ = _apart(lambda write: write(entry(seed)), _LONGEST_PROGRAM)
    return not told or told[0].startswith("Refused")


def _forget() -> None:
    """Let what the product and the programs consist of be imported again."""
    for name in [each for each in sys.modules if each.split(".")[0] in {"penstock", "fuzz", "operators"}]:
        del sys.modules[name]


_LONGEST_PROGRAM = 60
"""Seconds of processor time after which a program does not end."""


def _apart(work: Callable[[Callable[[Any], None]], None], seconds: float) -> tuple[list[Any], str]:
    """Run work in a forked process; what it wrote, and whether it ended, crashed or took too long."""
    with tempfile.NamedTemporaryFile("r+") as file:
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            _end(work, file.name, seconds)
        _, status = os.waitpid(process, 0)
        ended = "ended" if status == 0 else f"the process ended with status {status}"
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            ended = "it does not end"
        return [json.loads(each) for each in file.read().splitlines()], ended


def _end(work: Callable[[Callable[[Any], None]], None], name: str, seconds: float) -> None:
    """Do the work of a forked process, and end it."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
    status = 1
    try:
        with Path(name).open("a") as told:

            def write(value: Any) -> None:
                told.write(json.dumps(value) + "\n")
                told.flush()

            work(write)
        status = 0
    except BaseException as error:  # noqa: BLE001 -- whatever a mutant does
        _say(f"{type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _covered_apart(programs: int) -> Covered:
    """The same in a process of its own: this one must not import the product before a mutant is chosen."""

    def work(write: Callable[[Any], None]) -> None:
        found = covered(range(programs))
        write(
            {
                "lines": {file: sorted(each) for file, each in found.lines.items()},
                "functions": {str(seed): sorted(each) for seed, each in found.functions.items()},
                "outcomes": {str(seed): each for seed, each in found.outcomes.items()},
            }
        )

    told, ended = _apart(work, 36_000)
    assert told, ended
    return Covered(
        {file: set(each) for file, each in told[0]["lines"].items()},
        {int(seed): {(file, line) for file, line in each} for seed, each in told[0]["functions"].items()},
        {int(seed): each for seed, each in told[0]["outcomes"].items()},
    )


def watched(programs: int) -> Covered:
    """What so many programs execute; those that are wrong without a mutant are left out."""
    for each in _HEAVY:
        importlib.import_module(each)
    seen = _covered_apart(programs)
    for each, told in seen.outcomes.items():
        if told.startswith("wrong"):
            _say(f"program {each} is wrong without a mutant: {told}")
            del seen.functions[each]
    said = Counter(told.split(":")[0] for told in seen.outcomes.values())
    _say(f"{programs} programs: {dict(said)}")
    return seen


def soak(seed: int, seen: Covered, count: int, minutes: float) -> list[Verdict]:
    """So many mutants in so many minutes of processor time, and a line for each."""
    programs = len(seen.outcomes)
    found: list[Verdict] = []
    chosen = drawn(seed, seen, count)
    for place, mutant in enumerate(chosen):
        left = minutes * 60 - sum(each.seconds for each in found)
        fresh = range(programs, programs + _FRESH)
        verdict = judged(mutant, seen, max(left / (len(chosen) - place), 5.0), fresh=fresh)
        if verdict.found and verdict.seed in fresh and _wrong_anyway(verdict.seed):
            verdict = replace(verdict, found=False)
        found.append(verdict)
        how = f"found after {verdict.ran}" if verdict.found else f"SURVIVED {verdict.ran}"
        _say(f"{place:3} {_group(mutant.file):9} {how:16} {mutant}")
        if verdict.found:
            _say(f"{'':14}program {verdict.seed}: {verdict.why[:150]}")
    caught = sum(each.found for each in found)
    _say(f"seed {seed}: {caught} of {len(found)} found, {caught / max(len(found), 1):.0%}")
    return found


_FRESH = 2_000
"""The most programs that look for a mutant after those of which it is known what they execute."""


def _wrong_anyway(seed: int) -> bool:
    """Whether a program is wrong without a mutant."""
    told, _ = _apart(lambda write: write(outcome(seed)), _LONGEST_PROGRAM)
    return not told or told[0].startswith("wrong")


_HEAVY = (
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "duckdb",
    "sqlglot",
    "pyspark.sql",
    "pyspark.sql.pandas.types",
)
"""What no mutant changes is imported once, before processes fork."""


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Print a table, or write it as JSON too."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--json")
    given = parser.parse_args()
    seen = watched(given.programs)
    found = [each for seed in given.seed for each in soak(seed, seen, given.mutants, given.minutes)]
    if given.json:
        Path(given.json).write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
