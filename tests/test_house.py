"""Rules of the house that no other tool checks."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE, LAB = ROOT / "src" / "penstock", ROOT / "lab" / "penstock_lab"

# The protocols of which every operator is one: to ask for them is not to ask which operator it is.
PROTOCOLS = frozenset({"Operator", "Step", "Filter"})


def operator_classes(package=PACKAGE):
    """The names of the classes under operators/ that are operators, protocols aside."""
    bases = {}
    for path in sorted((package / "operators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {_name(each) for each in node.bases}
    found = set(PROTOCOLS)
    while more := {name for name, given in bases.items() if name not in found and given & found}:
        found |= more
    return found - PROTOCOLS


def asking(tree, operators):
    """The lines that ask which operator something is, by isinstance, issubclass, type(x) or a class pattern.

    Only names that come from penstock count: other packages have a Select and a Union too.
    """
    own = _imported_from_penstock(tree)
    for node in ast.walk(tree):
        tested = []
        if isinstance(node, ast.Call) and _name(node.func) in {"isinstance", "issubclass"}:
            tested = node.args[1:]
        elif isinstance(node, ast.Compare) and any(_is_type_call(each) for each in ast.walk(node)):
            tested = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        nodes = [each for one in tested for each in ast.walk(one)]
        named = [each for each in nodes if isinstance(each, ast.Name | ast.Attribute)]
        if any(_root(each) in own and own.get(_name(each), _name(each)) in operators for each in named):
            yield tested[0].lineno


def _imported_from_penstock(tree):
    """What the names that a file imports from penstock are called there."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "penstock":
            found |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                each.asname or "penstock": each.name
                for each in node.names
                if each.name.split(".")[0] == "penstock"
            }
    return found


def _root(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", None)


def _name(node):
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _is_type_call(node):
    return isinstance(node, ast.Call) and _name(node.func) == "type"


def test_operators_are_found_by_what_they_subclass():
    assert {
        "Aggregation",
        "Branch",
        "Join",
        "Map",
        "Process",
        "Select",
        "Union",
        "Where",
    } <= operator_classes()


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(x, Join)",
        "isinstance(x, (Where, operators.Join))",
        "isinstance(x, Renamed)",
        "isinstance(x, Where | Join)",
        "issubclass(kind, Join)",
        "type(x) is Join",
        "match x:\n    case Join(keys=()):\n        pass",
    ],
)
def test_every_way_to_ask_is_seen(text):
    lines = "from penstock import Join as Renamed, operators\nfrom penstock.query import Join, Where"
    assert list(asking(ast.parse(f"{lines}\n{text}"), {"Join"})) == [3 + text.startswith("match")]


def test_classes_of_other_packages_are_not_meant():
    text = "from sqlglot import exp\nfrom penstock.query import Join\nisinstance(x, exp.Join)"
    assert not list(asking(ast.parse(text), {"Join"}))


def test_nobody_outside_of_the_operators_asks_which_operator_it_has():
    operators = operator_classes()
    found = []
    for package in (PACKAGE, LAB):
        for path in sorted(package.rglob("*.py")):
            if (PACKAGE / "operators") not in path.parents:
                place = path.relative_to(ROOT).as_posix()
                found += [f"{place}:{line}" for line in asking(ast.parse(path.read_text()), operators)]
    assert not found, f"give the operators a method instead of asking: {', '.join(found)}"
