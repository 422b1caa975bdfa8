import subprocess
import sys

import pytest

import penstock.query as ps
from penstock.errors import BadName, UnknownColumn, WrongType
from penstock.query import query as engine

COLUMNS = "time timestamp, vehicle string, speed double, n int not null"


class Longest(ps.ArrowAggregate):
    state = {"length": "bigint"}  # noqa: RUF012
    result = "bigint"

    def __init__(self, *arguments, above=0.0):
        super().__init__(*arguments)
        self.above = above

    def accumulate(self, groups, n, *columns): ...

    def merge(self, left, right): ...

    def finish(self, state): ...


def reports(**change):
    return ps.stream(**{"name": "reports", "schema": COLUMNS, "time": "time", **change})


def windowed(**change):
    return reports(**change).group_by("vehicle", "n").window("1 hour", slide="1 minute")


def test_result_schema():
    query = windowed().agg(
        reports=ps.count(), mean=ps.avg("speed"), odd=ps.max("try_element_at(map('a', speed), 'a')")
    )
    assert [(each.name, each.type, each.nullable) for each in query.schema.columns] == [
        ("window_start", "timestamp", False),
        ("window_end", "timestamp", False),
        ("vehicle", "string", True),
        ("n", "int", False),
        ("reports", "bigint", False),
        ("mean", "double", True),
        ("odd", None, True),
    ]


def test_window_bounds_have_the_type_of_the_time_column():
    query = windowed(schema=COLUMNS.replace("timestamp", "timestamp_ntz")).agg(c=ps.count())
    assert query.schema.column("window_start").type == "timestamp_ntz"


@pytest.mark.parametrize("name", ["vehicle", "VEHICLE", "window_start", "Window_End", "_ps_a"])
def test_names_of_aggregates_are_checked(name):
    with pytest.raises(BadName):
        windowed().agg(**{name: ps.count()})


def test_a_key_cannot_be_named_like_a_bound():
    with pytest.raises(BadName):
        reports().group_by(window_end="vehicle").window("1 hour").agg(c=ps.count())


def test_agg_without_an_aggregate_gives_the_groups():
    assert windowed().agg().schema.names == ("window_start", "window_end", "vehicle", "n")


def test_aggregates_read_what_is_in_sight():
    with pytest.raises(UnknownColumn):
        reports().select("vehicle").window("1 hour").agg(mean=ps.avg("speed"))


def test_where_after_agg_reads_the_results():
    query = windowed().agg(c=ps.count()).where("c > 3 and vehicle is not null")
    assert str(query.operator) == "where(`c` > 3 AND NOT `vehicle` IS NULL)"
    with pytest.raises(UnknownColumn):
        query.where("speed > 3")


def test_where_after_agg_needs_a_condition():
    with pytest.raises(WrongType):
        windowed().agg(c=ps.count()).where("c")


@pytest.mark.parametrize("names", [("vehicle",), ("vehicle", "window_start")])
def test_select_after_agg_keeps_the_bounds_first(names):
    query = windowed().agg(c=ps.count()).select(*names, twice="c * 2")
    assert query.schema.names == ("window_start", "window_end", "vehicle", "twice")
    assert query.inputs[0].schema.names == ("window_start", "window_end", "vehicle", "n", "c")


def test_select_after_agg_cannot_redefine_a_bound():
    with pytest.raises(BadName, match="window_start"):
        windowed().agg(c=ps.count()).select(window_start="c")


def test_queries_are_values():
    make = lambda: windowed().agg(c=ps.count(), j=Longest("speed")).where("c > 1")  # noqa: E731
    assert make() == make()
    assert hash(make()) == hash(make())


def test_repr():
    query = windowed().agg(c=ps.count(), p=ps.quantile("speed", 0.5), j=Longest("speed")).where("c > 1")
    assert repr(query) == (
        "reports.group_by(vehicle, n).window(1 hour slide 1 minute)"
        ".agg(c=count(), p=quantile(`speed`, q=0.5, k=200), j=Longest(`speed`)).where(`c` > 1)"
    )


BASE = windowed().agg(m=ps.max("speed"))


@pytest.mark.parametrize(
    "same",
    [
        BASE.where("m > 1").select("m"),
        windowed(delay="1 minute").agg(m=ps.max("speed")),
        windowed(idle="1 minute").agg(m=ps.max("speed")),
        windowed(source=ps.files("elsewhere")).agg(m=ps.max("speed")),
        windowed(name="others").agg(m=ps.max("speed")),
        windowed().agg(m=ps.max(" SPEED ")),
    ],
)
def test_the_fingerprint_stays(same):
    assert same.fingerprint() == BASE.fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        windowed(schema=COLUMNS + ", z int").agg(m=ps.max("speed")),
        windowed(key="vehicle").agg(m=ps.max("speed")),
        reports()
        .where("n > 1")
        .group_by("vehicle", "n")
        .window("1 hour", slide="1 minute")
        .agg(m=ps.max("speed")),
        reports().group_by("vehicle").window("1 hour", slide="1 minute").agg(m=ps.max("speed")),
        reports().group_by("vehicle", "n").window("1 hour", slide="2 minutes").agg(m=ps.max("speed")),
        windowed().agg(m=ps.min("speed")),
        windowed().agg(m=ps.max("speed + 1")),
        windowed().agg(m=ps.quantile("speed", 0.5)),
        windowed().agg(m=Longest("speed")),
    ],
)
def test_the_fingerprint_changes(other):
    assert other.fingerprint() != BASE.fingerprint()


def test_the_fingerprint_knows_a_user_aggregates_settings():
    plain, other = (windowed().agg(m=Longest("speed", above=above)) for above in (0.0, 1.0))
    assert plain.fingerprint() != other.fingerprint()


def test_the_fingerprint_is_the_same_in_another_process():
    text = (
        "import penstock.query as ps;"
        f"s = ps.stream('reports', {COLUMNS!r}, time='time').group_by('vehicle', 'n');"
        "print(s.window('1 hour', slide='1 minute').agg(m=ps.max('speed')).fingerprint())"
    )
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=environment()
    )
    assert found.stdout.strip() == BASE.fingerprint()


def environment():
    return {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"}


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setattr(engine, "_installed", [])


@pytest.mark.usefixtures("no_engine")
def test_without_another_engine_queries_run_on_spark():
    assert type(engine.installed()).__name__ == "SparkEngine"
    assert engine.installed() is engine.installed()


@pytest.mark.usefixtures("no_engine")
def test_the_installed_engine_gets_the_query_and_all_options():
    class Recorder:
        def start(self, query, sinks, options):
            return query, sinks, options

        def explain(self, query, **_):
            return f"plan of {query!r}"

    ps.install(Recorder())
    sink, late = ps.memory(), ps.parquet("late")
    query, sinks, options = BASE.start(sink, "state/", late=late, channels=4, name="run")
    assert query == ps.outputs(BASE)
    assert sinks == (sink,)
    assert options == ps.RunOptions(checkpoint="state/", late=late, channels=4, name="run")
    assert BASE.explain() == f"plan of {BASE!r}"
