"""Small graphs written by hand, for tests of the oracle itself."""

from graphs.graph import Column, Graph, Joined, Node, Sliding, Source, Windowed, joined, windowed

COLUMNS = (Column("time", "timestamp"), Column("k", "string"), Column("i", "int"))


def source(name="a", delay=0):
    return Node(Source(name, delay), (), COLUMNS, "time")


def rows(*given):
    return [dict(zip(("time", "k", "i"), each, strict=True)) for each in given]


def counted(nodes, place, size, slide, key="k"):
    operator = Windowed(((key, key),), (Sliding(size, slide),), (("c", "count", None),))
    return windowed(nodes, place, operator, {key: Column(key, "string"), "c": Column("c", "bigint")})


def matched(nodes, left, right, **options):
    settings = {"within": None, "last": None, "how": "inner", "condition": None, **options}
    return joined(nodes, left, right, Joined((("k", "k"),), suffixes=("_l", "_r"), **settings))


def graph(nodes, **epochs):
    return Graph(tuple(nodes), (len(nodes) - 1,), epochs, channels=1)
