# Everything works from a bare clone: each target first makes .venv and sees that Java is there, and what tests
# talk to: a Redis server to compare with, and openssl for certificates.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Spark's classes, parsed and linked: each of the many JVMs of the tests starts from them.
CLASSES := $(VENV)/spark.jsa

# Many processes import the same modules: drivers, gates, Spark's workers. Each would compile them again.
export PYTHONDONTWRITEBYTECODE :=

PACKAGES := --editable ".[delta,demo,s3]" --editable ./lab --group dev

.PHONY: demo test check style types imports doctests bench soak functions clean constraints

demo: $(READY)
	$(BIN)/penstock demo

test: $(READY)
	$(MAKE) --jobs 2 --output-sync check $(CLASSES)
	$(BIN)/pytest -m "not soak" --numprocesses 3 --dist loadfile --no-loadscope-reorder

check: types doctests style imports

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

doctests: $(READY)
	$(BIN)/pytest --doctest-modules src/penstock lab/penstock_lab

bench: $(READY)
	$(BIN)/penstock bench peers
	$(BIN)/penstock bench windows
	$(BIN)/penstock bench latency
	$(BIN)/penstock bench growth --plot docs/growth.png
	$(BIN)/penstock bench routing
	$(BIN)/penstock bench splits
	$(BIN)/penstock bench operators
	$(BIN)/penstock bench process
	$(BIN)/penstock bench skew
	$(BIN)/penstock bench channels
	$(BIN)/penstock bench executors
	$(BIN)/penstock bench rescale
	$(BIN)/penstock bench gates
	$(BIN)/penstock bench inlet
	$(BIN)/penstock reproduce all --plots figures

soak: $(READY) $(CLASSES)
	$(BIN)/pytest -m soak -s

$(CLASSES): $(READY)
	$(BIN)/python tests/jvms.py $@

# The functions that Spark knows and the types that they refuse, for a new version of Spark; takes minutes.
functions: $(READY)
	$(BIN)/python tests/expressions/spark_registry.py
	PYTHONPATH=tests $(BIN)/python tests/expressions/spark_signatures.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# The newest versions that pyproject.toml allows; commit the file once the tests pass with them.
constraints:
	$(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-newest/bin/pip install --quiet $(PACKAGES)
	$(VENV)-newest/bin/pip freeze --exclude-editable > constraints.txt
	rm -rf $(VENV)-newest

$(READY): pyproject.toml lab/pyproject.toml constraints.txt
	@command -v java >/dev/null || (apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless)
	@command -v redis-server >/dev/null && command -v openssl >/dev/null || \
	  (apt-get update && apt-get install -y --no-install-recommends redis-server openssl)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	@# Python compiles what is imported; pip would compile everything, one file after the other.
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt $(PACKAGES)
	@touch $@
