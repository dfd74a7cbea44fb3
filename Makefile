# `make` lists the targets. What they need beyond a C++20 compiler, Python >= 3.10 and cargo goes
# into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?= resnet18 --target llvm
JOBS ?= 2
TESTS ?= tests/python
BUILD_DIR := build/core
# OFF compiles each C++ source alone, so that editing one compiles one; build folders remember it.
UNITY ?=
UNITY_DEFINE := $(if $(UNITY),-DTVM_UNITY=$(UNITY))
# Compilers and tests do not take part in make's count of jobs: its pipe is closed to them, and rustc
# warns of that.
APART := env -u MAKEFLAGS -u MFLAGS

NATIVE_SOURCES := $(shell find src include cmake 3rdparty rust/egg_simpl/src -type f) CMakeLists.txt \
                  rust/egg_simpl/Cargo.toml rust/egg_simpl/Cargo.lock rust/egg_simpl/build.rs
CXX_FILES := $(shell find src include tests/cpp -name '*.h' -o -name '*.cc')

.DEFAULT_GOAL := help
.PHONY: help tune test build lint format test-rust test-cpp test-python test-fuzz-rpc \
        test-faults test-fuzz test-sanitize test-beside docs bench \
        clean check-tools

help:  ## this list
	@echo "Targets; the first use of most sets up .venv and builds, which takes some minutes:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	  awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'
	@echo
	@echo "Variables: PYTHON=$(PYTHON) (makes .venv), JOBS=$(JOBS) (compilers and tests at a time), ARGS (see tune),"
	@echo "           UNITY=OFF (compiles each C++ source alone, for those who edit them; the build remembers it)"

tune: build  ## tune a network for this CPU; ARGS="mobilenet_v2 --trials 200", ARGS=--help lists all
	$(BIN)/python scripts/felix_tune_network.py $(ARGS)

# Much of this uses one core, or waits: unpacking dependencies, mypy, the last notebook, writing the
# site, tests that look at what happens after a while. So dependencies are installed while compilers
# run, and the Python tests, the longest part, run beside everything else.
test:  ## all tests and linters, and the site
	@$(MAKE) --no-print-directory --jobs=2 build
	@$(MAKE) --no-print-directory --jobs=2 test-python test-beside

# The output of each appears when it has ended. What these start at a time, half of JOBS, is little
# enough for tests that time out and for the memory.
BESIDE_JOBS := $(shell expr \( $(JOBS) + 1 \) / 2)
test-beside: build
	@for step in lint test-rust test-cpp docs; do \
	  $(MAKE) --no-print-directory JOBS=$(BESIDE_JOBS) $$step >build/$$step.log 2>&1; status=$$?; \
	  cat build/$$step.log; \
	  if [ $$status != 0 ]; then echo "make $$step failed: see build/$$step.log"; exit $$status; fi; \
	done

build: $(VENV)/.dependencies $(VENV)/.installed  ## set up .venv and build the package into it

check-tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed; name one with PYTHON=/path/to/python3"; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || \
	  { echo "A C++20 compiler is needed (for example the distribution's g++ package)"; exit 1; }
	@command -v cargo >/dev/null || \
	  { echo "cargo is needed for the expression simplifier (install the Rust tool-chain)"; exit 1; }

# Dependencies change rarely and are slow to install, so they have stamps of their own: those that
# compiling needs, and the rest.
$(VENV)/.build-tools: pyproject.toml scripts/install_dependencies.py | check-tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python scripts/install_dependencies.py --build-tools
	touch $@

$(VENV)/.dependencies: $(VENV)/.build-tools
	$(BIN)/python scripts/install_dependencies.py
	touch $@

# The stamp is of when the build began: what was edited while it ran is built by the next one.
$(VENV)/.installed: $(VENV)/.build-tools $(NATIVE_SOURCES)
	@touch $@.begun
	$(APART) CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/python -m pip install --quiet --no-build-isolation \
	  --no-deps $(if $(UNITY),--config-settings=cmake.define.TVM_UNITY=$(UNITY)) --editable .
	@mv $@.begun $@

lint: build  ## ruff, mypy, clang-format, clippy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(APART) cargo fmt --manifest-path rust/egg_simpl/Cargo.toml --check
	$(APART) cargo clippy --quiet --manifest-path rust/egg_simpl/Cargo.toml --target-dir build/cargo \
	  --all-targets -- -D warnings

format: build  ## put all sources into the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)
	cargo fmt --manifest-path rust/egg_simpl/Cargo.toml

test-rust:  ## tests of the simplifier alone
	$(APART) cargo test --quiet --manifest-path rust/egg_simpl/Cargo.toml --target-dir build/cargo

# The tests reuse the objects of the installed build; only the test programs are compiled here.
test-cpp: build  ## C++ tests alone
	$(BIN)/cmake -DTVM_BUILD_TESTS=ON $(UNITY_DEFINE) $(BUILD_DIR) >/dev/null
	$(APART) $(BIN)/cmake --build $(BUILD_DIR) --parallel $(JOBS)
	$(BIN)/ctest --test-dir $(BUILD_DIR) --output-on-failure --parallel $(JOBS)

# Several at a time, so each leaves the other cores alone.
test-python: build  ## Python tests alone; TESTS=tests/python/te runs some
	$(APART) OMP_NUM_THREADS=1 TVM_NUM_THREADS=$(shell nproc) $(BIN)/python -m pytest --numprocesses $(JOBS) $(TESTS)

# Both ends of the C++ protocol with sanitizers, leaks included, in a build of the runtime alone;
# then trackers, proxies, servers and clients as Python starts them.
MESSAGES ?= 1000000
test-fuzz-rpc: build  ## a million damaged messages at all of tvm.rpc; MESSAGES=20000 sends fewer
	$(BIN)/cmake -S . -B $(SANITIZE_DIR) -G Ninja $(SANITIZE_CONFIGURE)
	$(BIN)/cmake --build $(SANITIZE_DIR) --parallel $(JOBS) --target fuzz_rpc
	$(subst detect_leaks=0,detect_leaks=1,$(SANITIZE_OPTIONS)) $(SANITIZE_DIR)/fuzz_rpc $(MESSAGES)
	TVM_RPC_FUZZ=$(MESSAGES) $(BIN)/python -m pytest -q --timeout 7200 tests/python/rpc/test_rpc_fuzz.py

# An hour; the last line counts faults, and records lost, doubled, and things left over.
FAULTS ?= 1000
test-faults: build  ## 1000 faults in small tuning runs; FAULTS=50 injects fewer
	OMP_NUM_THREADS=1 $(BIN)/python tests/python/testing_faults.py --faults $(FAULTS) --jobs $(JOBS)

# Programs that show a failure are written into build/fuzz.
CASES ?= 100000
test-fuzz: build  ## 100000 random programs against references; CASES=500 runs fewer
	OMP_NUM_THREADS=1 TVM_NUM_THREADS=$(shell nproc) $(BIN)/python tests/python/testing_fuzz.py --cases $(CASES) --jobs $(JOBS)

# Building the site is the test of the tutorials: it runs them, and an error in one, or a warning, is
# an error.
docs: build  ## run the tutorials, and make the documentation site, in build/docs
	OMP_NUM_THREADS=1 TVM_NUM_THREADS=$(shell nproc) $(BIN)/python -m sphinx -W --keep-going -q -j $(JOBS) -b html docs build/docs

# AddressSanitizer and UndefinedBehaviorSanitizer over the C++ tests, and over the Python tests that
# read untrusted data or juggle object lifetimes, in a build of its own. The interpreter is not
# instrumented, so the libraries are preloaded; neither it nor our registries ever free everything,
# so leaks do not count. -S keeps the installed package's import hook from hiding the sanitized one.
# Damaged files ask for more memory than there is: the allocator says no, as it does elsewhere, and
# the reader raises MemoryError.
SANITIZE_DIR := build/sanitize
SANITIZE_TESTS ?= tests/python/node tests/python/ir tests/python/expr tests/python/arith \
                  tests/python/runtime tests/python/tir \
                  tests/python/rpc/test_rpc_fuzz.py \
                  tests/python/relax/test_damaged_executables.py \
                  tests/python/auto_scheduler/test_damaged_records.py
SANITIZE_CONFIGURE := -DTVM_SANITIZE=ON -DTVM_BUILD_TESTS=ON $(UNITY_DEFINE) \
                      -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
                      -DPython_EXECUTABLE=$(abspath $(BIN))/python
SANITIZE_OPTIONS := ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
                    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

test-sanitize: $(VENV)/.dependencies  ## C++ and some Python tests under ASan and UBSan
	$(BIN)/cmake -S . -B $(SANITIZE_DIR) -G Ninja $(SANITIZE_CONFIGURE)
	$(BIN)/cmake --build $(SANITIZE_DIR) --parallel $(JOBS)
	$(SANITIZE_OPTIONS) $(BIN)/ctest --test-dir $(SANITIZE_DIR) --output-on-failure
	site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	  $(SANITIZE_OPTIONS) PYTHONPATH=$(abspath $(SANITIZE_DIR))/python:$$site \
	  LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libstdc++.so)" \
	  $(BIN)/python -S -m pytest -p no:cacheprovider $(SANITIZE_TESTS)

bench: build  ## every benchmark, one after the other; takes an hour
	for script in $(filter-out %_cases.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

clean:  ## remove the build and .venv
	rm -rf build $(VENV)
