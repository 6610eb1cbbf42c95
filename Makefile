# Two commands are all a newcomer needs: `make demo` and `make test`. Each makes what it needs, from locked versions.
# Needs Python 3.11 or later, a Rust toolchain; the interoperability tests also a JDK 17 and Maven.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

export PATH := $(HOME)/.cargo/bin:$(PATH)
SYSTEM_PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name))))
VENV := .venv
BIN := $(VENV)/bin
# The binding is built against this interpreter wherever cargo is called from, so that cargo never rebuilds it for another.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

# The binaries say from which commit they are: in labels of counters, and to `headraced -v`.
ifndef HEADRACE_COMMIT
export HEADRACE_COMMIT := $(or $(shell git rev-parse --short=10 HEAD 2>/dev/null),unknown)
endif

STAMPS := .cache/make
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name 'Cargo.toml')
# The extension crate cannot link its tests without a shared libpython, which a stock Python may lack; its tests are Python's.
RUST_TESTED := --workspace --exclude headrace-python
SECONDS_EACH ?= 30
ROUNDS ?= 20
FAULTS ?= 300
ONLY ?=
PYTEST_ARGS ?=
# The Python tests wait more than they work. A file's tests stay together; tests/conftest.py says which folders do.
WORKERS ?= 3
SIDE_BY_SIDE := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# --- environment -----------------------------------------------------------------------------------------------

.PHONY: setup
setup: $(STAMPS)/setup ## Create .venv with every dependency at its locked version

$(STAMPS)/setup: requirements/dev.lock
	@[ -n "$(SYSTEM_PYTHON)" ] || { echo "error: Python 3.11 or later is needed and no python3 is on the PATH" >&2; exit 1; }
	@"$(SYSTEM_PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(SYSTEM_PYTHON) is older than Python 3.11; set SYSTEM_PYTHON to a newer one" >&2; exit 1; }
	@echo "installing the locked packages into $(VENV): some minutes the first time"
	@[ -x $(BIN)/python ] || "$(SYSTEM_PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@mkdir -p $(STAMPS) && touch $@

.PHONY: build
build: $(STAMPS)/build ## Build the extension, optimised, into .venv

$(STAMPS)/build: $(STAMPS)/setup $(RUST_SOURCES) pyproject.toml
	@command -v cargo > /dev/null || { echo "error: no cargo on the PATH; install a Rust toolchain first" >&2; exit 1; }
	@echo "compiling the Rust core: two minutes the first time, on two cores"
	@mkdir -p $(@D)
# maturin prints what it found even when it is to be quiet; what it says is worth reading when it fails.
	@PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet >$@.log 2>&1 \
	  || { cat $@.log >&2; exit 1; }
	@touch $@

# zig links against this glibc, the oldest on which Rust's standard library runs, whatever the machine has.
GLIBC := 2.17
WHEEL_TARGET := $(shell uname -m)-unknown-linux-gnu

.PHONY: wheel
wheel: $(STAMPS)/setup ## Build a wheel with headraced into target/wheels, for glibc 2.17 or later, and try it
	PATH="$(CURDIR)/$(BIN):$$PATH" cargo-zigbuild rustc --release --quiet -p headrace-driver --bin headraced \
	  --target $(WHEEL_TARGET).$(GLIBC) -- -C strip=symbols
	rm -f target/wheels/headrace-*.whl
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --quiet --zig --compatibility manylinux2014
	$(BIN)/python scripts/add_command.py target/wheels/headrace-*.whl target/$(WHEEL_TARGET)/release/headraced
	$(BIN)/auditwheel show target/wheels/headrace-*.whl
	$(BIN)/python scripts/check_wheel.py target/wheels/headrace-*.whl

.PHONY: lock
lock: $(STAMPS)/setup ## Choose dependency versions anew (edits requirements/dev.lock)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links requirements/dev.in --output-file requirements/dev.lock

# --- the product -----------------------------------------------------------------------------------------------

.PHONY: demo
demo: build ## Stream real data over IPC and UDP, verified; kill a cluster's leader; analyse recordings with Spark
	@$(BIN)/python -m headrace.demo
	@echo && $(BIN)/headrace cluster demo
# 3 says that there is no Java for Spark, and that everything up to there went well.
	@echo && $(BIN)/python examples/weather demo-results || [ $$? -eq 3 ]

.PHONY: bench
bench: build ## Measure against the named peers; ONLY=name measures one row
	cargo build --release --quiet -p headrace-bench -p headrace-driver
	@$(BIN)/python -m benches.run $(ONLY)

# --- tests -----------------------------------------------------------------------------------------------------

.PHONY: test
test: test-rust loom test-python ## Run the Rust tests, the models and the Python tests

# The second line runs the fuzz targets over their seeds and damage done to them.
.PHONY: test-rust
test-rust: $(STAMPS)/setup
	cargo test --quiet $(RUST_TESTED)
	cargo test --quiet --manifest-path fuzz/Cargo.toml --no-default-features --lib --target-dir target

.PHONY: test-python
test-python: build
	@mkdir -p .cache
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(PYTEST_ARGS) 2>&1 | tee .cache/pytest.log

# No JVM and no tests marked slow: what a change is tried with while it is made.
.PHONY: test-fast
test-fast: build ## Run the quick tests, without a JVM: under three minutes
	cargo test --quiet $(RUST_TESTED) --lib
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -q -m "not slow and not system and not faults and not interop" --ignore tests/spark $(PYTEST_ARGS)

.PHONY: loom
loom: ## Run the models of each shared-memory algorithm through every interleaving
	RUSTFLAGS="--cfg loom" cargo test --quiet --release -p headrace-buffers --lib loom --target-dir target/loom

# Needs a nightly toolchain with its sanitizer runtimes, which rustup's has. The standard library is not instrumented,
# so ThreadSanitizer sees no unlock of its mutexes: it runs on the crate that has none, and not on the test harness.
SANITIZED := cargo +nightly test --quiet --lib --tests --no-fail-fast --target $(shell uname -m)-unknown-linux-gnu
.PHONY: sanitize
sanitize: ## Run the Rust tests under AddressSanitizer, shared memory also under ThreadSanitizer
	@cargo +nightly --version > /dev/null 2>&1 || { echo "error: needs a nightly toolchain: rustup toolchain install nightly" >&2; exit 1; }
	RUSTFLAGS="-Zsanitizer=address" LSAN_OPTIONS="suppressions=$(CURDIR)/scripts/lsan.supp" \
	  $(SANITIZED) $(RUST_TESTED) --target-dir target/address
	RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" TSAN_OPTIONS="suppressions=$(CURDIR)/scripts/tsan.supp" \
	  $(SANITIZED) -p headrace-buffers --target-dir target/thread

# With choices of its own; a failure prints the seed that repeats it.
.PHONY: soak
soak: build ## Run the tests of chance ROUNDS=20 times as long: kills and power cuts of the archive
	HEADRACE_ROUNDS=$(ROUNDS) HEADRACE_SEED=$${HEADRACE_SEED:-$$RANDOM} \
	  $(BIN)/python -m pytest --timeout 0 -o faulthandler_timeout=0 $(PYTEST_ARGS) tests/archive -k "killed or power_cut"

.PHONY: soak-follow
soak-follow: build ## Follow a recording through FAULTS=300 random faults
	HEADRACE_FAULTS=$(FAULTS) HEADRACE_SEED=$${HEADRACE_SEED:-$$RANDOM} \
	  $(BIN)/python -m pytest --timeout 0 -o faulthandler_timeout=0 $(PYTEST_ARGS) tests/archive/test_follow.py -k random_faults

.PHONY: soak-cluster
soak-cluster: build ## Kill members of clusters 13 x ROUNDS=20 times under load, and cut some of five off
	HEADRACE_ROUNDS=$(ROUNDS) HEADRACE_SEED=$${HEADRACE_SEED:-$$RANDOM} \
	  $(BIN)/python -m pytest -s --timeout 0 -o faulthandler_timeout=0 $(PYTEST_ARGS) \
	  tests/cluster/test_kill_loops.py tests/cluster/test_process_kills.py tests/cluster/test_partitions.py

# Miri knows no mapped files, and reads of recordings take it minutes: those tests are left out.
MIRI_CANNOT := doorbell liveness cnc loss_report log::buffers exclusive::recorded
.PHONY: miri
miri: ## Interpret the tests of the algorithms over shared memory, to find undefined behaviour; slow
	@cargo +nightly miri --version > /dev/null 2>&1 || \
	  { echo "error: needs Miri: rustup toolchain install nightly --component miri,rust-src" >&2; exit 1; }
	MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=2 RUST_BACKTRACE=0 cargo +nightly miri test --quiet \
	  -p headrace-buffers --lib --target-dir target/miri -- $(addprefix --skip ,$(MIRI_CANNOT))

SECONDS ?= 60
.PHONY: simulate
simulate: build ## Run new seeds of the simulated world, of archives, copies of archives, receiving programs and clusters in it, for SECONDS=60 each; a failure names its seed
	SIMULATE_SECONDS=$(SECONDS) cargo test --quiet --release -p headrace-sim --test chaos streams -- --nocapture
	SIMULATE_SECONDS=$(SECONDS) cargo test --quiet --release -p headrace-sim --test crowds destinations -- --nocapture
	SIMULATE_SECONDS=$(SECONDS) cargo test --quiet --release -p headrace-sim --test names whatever -- --nocapture
	SIMULATE_SECONDS=$(SECONDS) cargo test --quiet --release -p headrace-sim --test gatherings -- --nocapture
	SIMULATE_SECONDS=$(SECONDS) cargo test --quiet --release -p headrace-sim --test joins -- --nocapture
	SIMULATE_SECONDS=$(SECONDS) $(BIN)/python -m pytest -q -s --timeout 0 -o faulthandler_timeout=0 tests/sim/test_archive_chaos.py tests/sim/test_receiving_chaos.py \
		tests/sim/test_replication_world.py \
		tests/sim/test_cluster_world.py tests/sim/test_parts_world.py tests/sim/test_cluster_swarm.py tests/consensus/test_model.py -k new_seeds

SEEDS ?= 0:1000
MEMBERS ?= 3
.PHONY: simulate-cluster
simulate-cluster: build ## Run SEEDS=0:1000 of a simulated cluster of MEMBERS=3, and count its elections, crashes, partitions and commands
	$(BIN)/python -m tests.sim.many_seeds $(SEEDS) --members $(MEMBERS)

.PHONY: mutants
mutants: build ## Put a defect for each rule into members, and see that schedules, or seeds of the simulated cluster, find it
	HEADRACE_ALL_MUTANTS=1 $(BIN)/python -m pytest -q -rA --timeout 0 -o faulthandler_timeout=0 $(PYTEST_ARGS) \
		tests/consensus/test_model.py tests/sim/test_mutants.py -k find_a_defect

.PHONY: fuzz
fuzz: ## Fuzz every decoder, SECONDS_EACH=30 on each
	scripts/fuzz.sh $(SECONDS_EACH)

# --- checks ----------------------------------------------------------------------------------------------------

.PHONY: check
check: lint type ## Formatting, lints, documentation, types, stubs, declared settings, house rules

.PHONY: lint
lint: $(STAMPS)/setup
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/python scripts/tidy.py
	cd python && ../$(BIN)/lint-imports ../pyproject.toml --no-cache
	$(BIN)/vulture

.PHONY: type
type: build
	$(BIN)/python scripts/settings.py --check
	$(BIN)/python scripts/states.py --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml headrace._core

.PHONY: fmt
fmt: $(STAMPS)/setup ## Format everything
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix . || true
	$(BIN)/ruff format --quiet .

.PHONY: docs
docs: build ## Write the API reference into site/
	$(BIN)/python scripts/api_reference.py site

# Graphviz lays out better than a hand can, and is in every distribution.
.PHONY: pictures
pictures: $(patsubst %.dot,%.svg,$(wildcard docs/images/*.dot)) ## Draw the pictures of docs/ from their text; needs Graphviz

docs/images/%.svg: docs/images/%.dot
	@command -v dot > /dev/null || { echo "error: no dot on the PATH; install Graphviz first" >&2; exit 1; }
	dot -Tsvg $< | sed -n '/^<svg/,$$p' > $@

.PHONY: clean
clean: ## Remove everything that make made
	rm -rf $(VENV) .cache target site bench-results demo-results weather-results python/headrace/*.so
