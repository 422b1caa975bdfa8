# Everything works from a bare clone: each target first makes .venv and sees that Java is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check bench soak clean

demo: $(READY)
	$(BIN)/penstock demo

test: check
	$(BIN)/pytest -m "not soak" --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --doctest-modules src/penstock

bench: $(READY)
	$(BIN)/penstock bench windows
	$(BIN)/penstock bench latency
	$(BIN)/penstock bench growth --plot docs/growth.png
	$(BIN)/penstock bench routing
	$(BIN)/penstock bench splits
	$(BIN)/penstock bench operators
	$(BIN)/penstock bench process
	$(BIN)/penstock bench rescale
	@command -v redis-server >/dev/null || (apt-get update && apt-get install -y --no-install-recommends redis-server)
	$(BIN)/penstock bench gates
	$(BIN)/penstock reproduce all --plots figures

soak: $(READY)
	$(BIN)/pytest -m soak -s

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): pyproject.toml
	@command -v java >/dev/null || (apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable . --group dev
	@touch $@
