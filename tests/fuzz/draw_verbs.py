"""Random operators that only Python has: deduplicate, windows of counts, process, explode."""

from fuzz.draw_expressions import PLAIN
from fuzz.draw_values import INTEGERS
from fuzz.program import Column, Relation, Table, Verb

SIMPLE = ("tinyint", "smallint", "int", "bigint", "string", "boolean", "date")
"""Types whose order is the same in Python."""


def draw_verb(drawer, depth, *, inner=False) -> Relation:
    """A verb over a relation that has its event time in sight, or a block if there is none that fits."""
    rng = drawer.rng
    given = drawer.item(depth, timed=True).relation
    if given.time is None or given.updating:
        given = rng.choice(drawer.tables)
    names = {each.name.lower() for each in given.columns}
    plain = [each for each in given.columns if each.exact and each.type in PLAIN and each.name != given.time]
    plain = [
        each for each in plain if each.name.lower() not in {"window_start", "window_end", "n", "lo", "hi"}
    ]
    arrays = [each for each in given.columns if each.type.startswith("array<")]
    kinds = ["deduplicate", "counts", "process", "fussy", "silent", "alarm"] if plain else []
    if arrays and isinstance(given, Table):
        kinds += ["explode"] * 4
    if isinstance(given, Table) and _pickable(given):
        kinds += ["picky"]
    if not kinds or names & {"n", "lo", "hi"}:
        return drawer.block(depth, timed=inner)
    return DRAWN[rng.choice(kinds)](drawer, given, plain, arrays)


def _verb(kind, given: Relation, columns, time, **options) -> Verb:
    return Verb(kind, (given,), tuple(options.items()), tuple(columns), time)


def _deduplicate(drawer, given, plain, _arrays) -> Verb:
    rng = drawer.rng
    keys = tuple(each.name for each in rng.sample(plain, rng.randint(1, min(2, len(plain)))))
    content = all(
        each.type in SIMPLE or each.name in {given.time, "window_start", "window_end"}
        for each in given.columns
    )
    pinned = {given.time, "window_start", "window_end"}
    columns = [each for each in given.columns if content or each.name in pinned or each.name in keys]
    within = rng.choice([1, 2, 5, 10]) * drawer.unit
    return _verb("deduplicate", given, columns, given.time, keys=keys, within=within, content=content)


def _counts(drawer, given, plain, _arrays) -> Relation:
    rng = drawer.rng
    simple = [each for each in plain if each.type in SIMPLE]
    if len(plain) < 2 or not simple:
        return _process(drawer, given, plain, _arrays)
    read = rng.choice(simple)
    key = rng.choice([each for each in plain if each != read])
    size, slide = rng.choice([1, 2, 3, 5]), rng.choice([1, 2, 3])
    bounds = [Column(name, "timestamp") for name in ("window_start", "window_end")]
    columns = [*bounds, key, Column("n", "bigint"), Column("lo", read.type), Column("hi", read.type)]
    return _verb("counts", given, columns, "window_end", key=key.name, read=read.name, size=size, slide=slide)


def _keyed(given, key) -> list[Column]:
    return [Column(given.time, "timestamp"), key, Column("n", "bigint")]


def _process(drawer, given, plain, _arrays) -> Verb:
    key = drawer.rng.choice(plain)
    return _verb("process", given, _keyed(given, key), given.time, key=key.name)


def _fussy(drawer, given, plain, _arrays) -> Verb:
    key = drawer.rng.choice(plain)
    return _verb("fussy", given, _keyed(given, key), given.time, key=key.name)


def _silent(drawer, given, plain, _arrays) -> Verb:
    key = drawer.rng.choice(plain)
    # Between two slots, so that no row comes when a timer is due.
    timeout = drawer.rng.choice([1, 2, 5]) * drawer.unit + drawer.unit // 2
    return _verb("silent", given, _keyed(given, key), given.time, key=key.name, timeout=timeout)


def _alarm(drawer, given, plain, _arrays) -> Verb:
    key = drawer.rng.choice(plain)
    after = drawer.rng.choice([1, 2, 5]) * drawer.unit + drawer.unit // 2
    return _verb("alarm", given, _keyed(given, key), given.time, key=key.name, after=after)


def _explode(drawer, given, _plain, arrays) -> Relation:
    column = drawer.rng.choice(arrays)
    element = Column("part", column.type.removeprefix("array<").removesuffix(">"))
    outer = drawer.chance(0.5)
    return _verb(
        "explode", given, [*given.columns, element], given.time, column=column.name, name="part", outer=outer
    )


def _pickable(given: Table) -> list[tuple[str, object]]:
    """Values of whole numbers and texts, each with its column, for which a function may raise."""
    names = [each.name for each in given.columns if each.type in {*INTEGERS, "string"}]
    places = {name: given.names.index(name) for name in names}
    return [
        (name, row[place]) for name, place in places.items() for row in given.rows if row[place] is not None
    ]


def _picky(drawer, given, _plain, _arrays) -> Relation:
    column, value = drawer.rng.choice(_pickable(given))
    way = drawer.rng.choice(["", ", channels=True", f", by={column!r}"])
    return _verb("picky", given, given.columns, given.time, column=column, value=value, way=way)


DRAWN = {
    "deduplicate": _deduplicate,
    "counts": _counts,
    "process": _process,
    "fussy": _fussy,
    "silent": _silent,
    "alarm": _alarm,
    "explode": _explode,
    "picky": _picky,
}
