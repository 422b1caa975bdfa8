import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys, types
import importlib.util
# The package itself without its __init__, which is not part of this room.
package = types.ModuleType("penstock")
package.__path__ = [importlib.util.find_spec("penstock").submodule_search_locations[0]]
sys.modules["penstock"] = package
import penstock.ingest
for each in pkgutil.walk_packages(penstock.ingest.__path__, "penstock.ingest."):
    importlib.import_module(each.name)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_a_device_that_only_pushes_needs_no_engine():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert not {"pyspark", "py4j", "duckdb", "sqlglot", "deltalake", "matplotlib", "pandas"} & {
        *done.stdout.split()
    }
