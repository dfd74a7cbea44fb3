# The two commands of the README: `make tune` (the main job) and `make test` (all tests and linters).
# Everything they need beyond a C++20 compiler, Python >= 3.10 and cargo goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?= resnet18 --target llvm
JOBS ?= 2
BUILD_DIR := build/core

NATIVE_SOURCES := $(shell find src include cmake rust/egg_simpl/src -type f) CMakeLists.txt \
                  rust/egg_simpl/Cargo.toml rust/egg_simpl/Cargo.lock
CXX_FILES := $(shell find src include tests/cpp -name '*.h' -o -name '*.cc')

.PHONY: tune test build lint format test-rust test-cpp test-python test-sanitize docs bench clean check-tools

tune: build
	$(BIN)/python scripts/felix_tune_network.py $(ARGS)

test: build lint test-rust test-cpp test-python docs

build: $(VENV)/.installed

check-tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed; name one with PYTHON=/path/to/python3"; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || \
	  { echo "A C++20 compiler is needed (for example the distribution's g++ package)"; exit 1; }
	@command -v cargo >/dev/null || \
	  { echo "cargo is needed for the expression simplifier (install the Rust tool-chain)"; exit 1; }

# Dependencies change rarely and are the slow part, so they have a stamp of their own.
$(VENV)/.dependencies: pyproject.toml scripts/install_dependencies.py | check-tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python scripts/install_dependencies.py
	touch $@

$(VENV)/.installed: $(VENV)/.dependencies $(NATIVE_SOURCES)
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/python -m pip install --quiet --no-build-isolation \
	  --no-deps --editable .
	touch $@

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	cargo fmt --manifest-path rust/egg_simpl/Cargo.toml --check
	cargo clippy --quiet --manifest-path rust/egg_simpl/Cargo.toml --target-dir build/cargo \
	  --all-targets -- -D warnings

format: build
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)
	cargo fmt --manifest-path rust/egg_simpl/Cargo.toml

test-rust:
	cargo test --quiet --manifest-path rust/egg_simpl/Cargo.toml --target-dir build/cargo

# The tests reuse the objects of the installed build; only the test programs are compiled here.
test-cpp: build
	$(BIN)/cmake -DTVM_BUILD_TESTS=ON $(BUILD_DIR) >/dev/null
	$(BIN)/cmake --build $(BUILD_DIR) --parallel $(JOBS)
	$(BIN)/ctest --test-dir $(BUILD_DIR) --output-on-failure --parallel $(JOBS)

test-python: build
	$(BIN)/python -m pytest --nbmake tests/python docs/tutorials

# Building the site executes the tutorials; a warning is an error.
docs: build
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

# AddressSanitizer and UndefinedBehaviorSanitizer over the C++ tests, and over the Python tests that
# read untrusted data or juggle object lifetimes, in a build of its own. The interpreter is not
# instrumented, so the libraries are preloaded; neither it nor our registries ever free everything,
# so leaks do not count. -S keeps the installed package's import hook from hiding the sanitized one.
# Damaged files ask for more memory than there is: the allocator says no, as it does elsewhere, and
# the reader raises MemoryError.
SANITIZE_DIR := build/sanitize
SANITIZE_TESTS ?= tests/python/node tests/python/ir tests/python/arith tests/python/runtime \
                  tests/python/tir tests/python/relax/test_damaged_executables.py \
                  tests/python/auto_scheduler/test_damaged_records.py
SANITIZE_OPTIONS := ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
                    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

test-sanitize: $(VENV)/.dependencies
	$(BIN)/cmake -S . -B $(SANITIZE_DIR) -G Ninja -DTVM_SANITIZE=ON -DTVM_BUILD_TESTS=ON \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python
	$(BIN)/cmake --build $(SANITIZE_DIR) --parallel $(JOBS)
	$(SANITIZE_OPTIONS) $(BIN)/ctest --test-dir $(SANITIZE_DIR) --output-on-failure
	site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	  $(SANITIZE_OPTIONS) PYTHONPATH=$(abspath $(SANITIZE_DIR))/python:$$site \
	  LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libstdc++.so)" \
	  $(BIN)/python -S -m pytest -p no:cacheprovider $(SANITIZE_TESTS)

bench: build
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf build $(VENV)
