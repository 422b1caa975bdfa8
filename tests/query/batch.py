"""What a relation of stateless steps and joins within a distance holds, over whole tables in DuckDB."""

import sqlglot

import penstock.query as ps

TIME = "_ps_time"


def batch(relation):
    """The relation as one DuckDB query; its event time is the column _ps_time."""
    if isinstance(relation, ps.Stream):
        return f'SELECT *, "{relation.time}" AS {TIME} FROM {relation.name}'
    inputs = [batch(each) for each in relation.inputs]
    operator = relation.operator
    if isinstance(operator, ps.Where):
        return f"SELECT * FROM ({inputs[0]}) WHERE {duck(operator.expression.sql)}"
    if isinstance(operator, ps.Branch):
        return f"SELECT * FROM ({inputs[0]}) WHERE {duck(operator.condition)}"
    if isinstance(operator, ps.Select):
        columns = [f'{duck(each.sql)} AS "{name}"' for name, each in operator.columns]
        return f"SELECT {', '.join(columns)}, {TIME} FROM ({inputs[0]})"
    if isinstance(operator, ps.Union):
        return " UNION ALL BY NAME ".join(f"SELECT * FROM ({each})" for each in inputs)
    return joined(operator, *inputs)


def joined(join, left, right):
    pairs = [f'l."{key.left}" = r."{key.right}"' for key in join.keys]
    pairs += [f"abs(epoch_us(l.{TIME}) - epoch_us(r.{TIME})) <= {join.within}"]
    pairs += [f"({duck(join.condition.sql)})"] if join.condition else []
    function, first, second = {"left": ("coalesce", "l", "r"), "right": ("coalesce", "r", "l")}.get(
        join.times, ("least", "l", "r")
    )
    time = f"{function}({first}.{TIME}, {second}.{TIME})"
    columns = [f'{time} AS "{join.time}"', f"{time} AS {TIME}"]
    columns += [f'coalesce(l."{key.left}", r."{key.right}") AS "{key.left}"' for key in join.keys]
    columns += [f'l."{stored}" AS "{name}"' for stored, name in join.left]
    columns += [f'r."{stored}" AS "{name}"' for stored, name in join.right]
    return f"SELECT {', '.join(columns)} FROM ({left}) l {join.how} JOIN ({right}) r ON {' AND '.join(pairs)}"


def duck(text):
    return sqlglot.transpile(text, read="spark", write="duckdb")[0]
