"""ROW_NUMBER() and RANK() over windows: the first rows of each window and key.

The number of a row is asked for in a sub-query, and a condition around it says how many rows are wanted.
"""

from dataclasses import replace
from typing import Final

from sqlglot import exp

from penstock.errors import BadExpression, BadName, BadWindow
from penstock.expressions.parsing import Tree, call_name, dotted, render
from penstock.expressions.scalar import scalar
from penstock.expressions.schema import quoted
from penstock.operators.names import check_quotients
from penstock.query.relation import Relation
from penstock.query.sql.scope import Scope, found_in
from penstock.query.sql.selecting import described, expanded
from penstock.query.sql.windows import WINDOW_BOUNDS, WindowClause, conjuncts, is_bound, named_bounds

__all__ = ["first_rows", "is_row_number", "keys_shown", "ranked_select", "take_limit"]

_FORM: Final = (
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY x DESC) "
    "AS r FROM …) WHERE r <= 3"
)


def is_row_number(item: Tree) -> bool:
    """Whether an item of a select list numbers rows."""
    return isinstance(item.unalias(), exp.Window)


def ranked_select(table: Tree) -> exp.Subquery | None:
    """The table, if it is a sub-query that numbers rows."""
    if not isinstance(table, exp.Subquery) or not isinstance(table.this, exp.Select):
        return None
    return table if any(map(is_row_number, table.this.expressions)) else None


def take_limit(tree: exp.Select, number: Tree, table: str) -> int:
    """How many rows WHERE asks for by the number of a row; the condition is taken out of it."""
    name, where = number.alias, tree.args.get("where")
    found: list[int] = []
    rest: list[Tree] = []
    for each in conjuncts(where.this) if where else ():
        limit = _limit(each, name, table)
        if limit is not None:
            found.append(limit)
        if limit is None or (isinstance(each.unnest(), exp.EQ) and limit > 1):
            rest.append(each)
    if not name or not found or min(found) < 1:
        raise BadExpression(
            f"{render(number)} needs a condition around it that says how many rows are wanted; write {_FORM}"
        )
    tree.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return min(found)


def _limit(condition: Tree, name: str, table: str) -> int | None:
    node = condition.unnest()
    if isinstance(node, (exp.GT, exp.GTE)):
        turned = exp.LT if isinstance(node, exp.GT) else exp.LTE
        node = turned(this=node.expression.copy(), expression=node.this.copy())
    if isinstance(node, exp.EQ) and isinstance(node.this, exp.Literal):
        node = exp.EQ(this=node.expression.copy(), expression=node.this.copy())
    if not isinstance(node, (exp.LT, exp.LTE, exp.EQ)):
        return None
    left, right = node.this, node.expression
    named = isinstance(left, exp.Column) and left.name.lower() == name.lower()
    if not named or left.table.lower() not in {"", table.lower()}:
        return None
    if not isinstance(right, exp.Literal) or right.is_string or not right.name.isdigit():
        raise BadExpression(
            f"{render(condition)}: compare the number of a row with a whole number; write {_FORM}"
        )
    limit = int(right.name)
    return limit - 1 if isinstance(node, exp.LT) else limit


def first_rows(
    scope: Scope, items: list[Tree], number: Tree, most: int, window: WindowClause | None
) -> Relation:
    """The first rows of each window and key, with their number under its name; without a window, so far."""
    call = number.unalias()
    _check_call(call)
    tables = [each.name for each in scope.tables if each.name]
    parts = [named_bounds(each.copy(), tables) for each in call.args.get("partition_by") or ()]
    keys = [each for each in parts if not is_bound(each)]
    if window is None and set(WINDOW_BOUNDS) <= set(scope.relation.pinned):
        window = WindowClause("same")
    total = window is None and len(keys) == len(parts)
    if not total and (window is None or len(keys) == len(parts)):
        raise BadWindow(
            f"{render(call)} has no window; write PARTITION BY window_start, window_end over a table "
            f"function or over results of windows, as in {_FORM}"
        )
    bounds = {*WINDOW_BOUNDS, *scope.relation.pinned}
    named = [(name, tree) for each in items for name, tree in expanded(each, scope)]
    columns = {name: tree for name, tree in named if not (name.lower() in bounds and is_bound(tree))}
    if number.alias.lower() in {name.lower() for name in columns}:
        raise BadName(
            f"two columns would have the name {number.alias!r}: the number of {render(call)} and a column of "
            "the rows; give the number another name with AS"
        )
    hidden: dict[str, str] = {}

    def column(tree: Tree) -> str:
        """The name under which the rows have an expression, which is added if none has it."""
        over = scope.over(tree)
        for name, each in columns.items():
            if render(each).lower().replace("`", "") == render(over).lower().replace("`", ""):
                return name
        name = described(tree, (*columns, *hidden, *bounds, number.alias))
        hidden[name] = render(over)
        return name

    for each in keys:
        check_quotients(scalar(render(scope.over(each)), scope.relation.schema), scope.relation.schema)
    names = [column(each) for each in keys]
    order = [(column(each.this), bool(each.args.get("desc"))) for each in call.args["order"].expressions]
    relation = scope.relation
    star = {name: render(dotted(name)) for name in relation.schema.names}
    texts = {name: render(tree) for name, tree in columns.items()}
    if hidden or {name: text for name, text in star.items() if name not in relation.pinned} != {
        name: text for name, text in texts.items() if name not in relation.pinned
    }:
        relation = relation.select(**texts, **hidden)
    grouped = {name: quoted(name) for name in names}
    if window is not None:
        windowed = window.over(relation, grouped)
    else:
        windowed = relation.group_by(**grouped) if grouped else relation
    ties = call_name(call.this) == "rank"
    downs = [down for _, down in order]
    found = windowed.top(most, by=[quoted(name) for name, _ in order], descending=downs, ties=ties)
    kept = {name: quoted(name) for name in columns}
    result: Relation = found.select(**kept, **{number.alias: quoted("rank")})
    return result


def keys_shown(scope: Scope, items: list[Tree], number: Tree) -> Scope:
    """The scope of what rows are numbered apart by, as far as the result shows it, under the names there."""

    def plain(tree: Tree) -> str:
        return render(tree).lower().replace("`", "")

    names = {plain(tree): name for each in items for name, tree in expanded(each, scope)}
    places = {
        found.read: names[plain(scope.over(each))]
        for each in number.unalias().args.get("partition_by") or ()
        if (found := found_in(each)) is not None and not found.fields and plain(scope.over(each)) in names
    }
    return replace(scope, places=places)


def _check_call(call: Tree) -> None:
    name = call_name(call.this)
    order = call.args.get("order")
    if name not in {"row_number", "rank"} or order is None or call.args.get("spec"):
        raise BadExpression(
            f"{render(call)} is not supported; number rows by ROW_NUMBER() or RANK() OVER (PARTITION BY … "
            f"ORDER BY …): {_FORM}"
        )
    for each in order.expressions:
        if bool(each.args.get("nulls_first")) == bool(each.args.get("desc")):
            raise BadExpression(f"{render(each)}: nulls are the least values; leave NULLS FIRST and LAST out")
