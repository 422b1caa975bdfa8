import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import jvms
import scratch

# Spark makes single examples slow; the seed is printed with a failure, so it can be replayed.
settings.register_profile(
    "penstock",
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ],
)
settings.load_profile("penstock")
os.environ.setdefault("PYTHONHASHSEED", "0")
# Drivers, gates and Spark's workers import the same modules, and would compile them again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
jvms.lean()
scratch.in_memory()
# Workers import the modules of classes that tests define, and with them what those import.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
)

# The files that take longest, in this order: begun first, so that none keeps one process busy at the end.
LONG = (
    "test_cluster",
    "test_executors",
    "test_crash_points",
    "test_gates_kill",
    "test_kill",
    "test_rescale_kill",
    "test_certificates",
    "test_places",
    "test_sources_contract",
    "test_graphs",
    "test_fuzz",
    "test_sinks_contract",
    "test_key_matrix",
    "test_contract",
    "test_tables_contract",
    "test_judging",
    "test_layout_policy",
    "test_joins",
    "test_keys_on_spark",
    "test_main",
    "test_gates",
    "test_deduplicate",
    "test_session_windows",
    "test_levels",
    "test_failures",
    "test_spark",
)


def pytest_addoption(parser):
    parser.addoption(
        "--regold", action="store_true", help="write the golden files again instead of comparing with them"
    )


def pytest_collection_modifyitems(items):
    on_spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}

    def place(item):
        stem = item.path.stem
        return LONG.index(stem) if stem in LONG else len(LONG), item.path not in on_spark

    items.sort(key=place)


@pytest.fixture(scope="session")
def spark():
    from sessions import quick_session

    session = quick_session("local[2]")
    yield session
    session.stop()
