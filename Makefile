# Each target does all its own set-up: a machine with Python 3.11+ and its headers, make and gcc is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
SMOKE := build/bench-smoke
SPEED_PAGE := docs/speed/README.md
# Compiled when the package is installed, so it is installed again when one of them is edited.
KERNELS := $(shell grep -ls "import cython" src/onbmacf/*/kernels/*.py) $(wildcard src/onbmacf/*/kernels/*.pxd)
# The benchmark's tables, where they lie beside the project.
ifneq ($(wildcard ../shared/data),)
export ONBMACF_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-all lint format bench-smoke benchmark speed optimum fuzz docs examples chromium clean \
  dist test-wheel test-extras test-floors test-newest tables

demo: $(VENV)/.base
	$(BIN)/onbmacf demo

# Models of tests are small: threads would only wait for each other, beside the other process.
test test-all: export OMP_NUM_THREADS = 1
# Some start processes, which would compile the package each time.
test test-all: export PYTHONDONTWRITEBYTECODE =

# The tests that are not marked `long`, with a part of the random cases: minutes. test-all runs everything.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not long"

test-all: $(VENV)/.test
	ONBMACF_ALL_TESTS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

# The pages of docs/ as a site in build/docs; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

# The committed example reports, made again by the commands that they print.
examples: $(VENV)/.test
	$(BIN)/python docs/examples/build.py

# The browser in which the reports are tested: installed where it is missing and we may.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -qy chromium; } \
	  || echo "no chromium: the tests of the reports in a browser will be skipped (or fail in CI)"

# The figures of docs/speed, beside NICE and DiCE: twenty minutes of a quiet machine. SPEED=--quick tries the scripts.
speed: $(VENV)/.speed
	$(BIN)/python benchmarks/speed_one.py --parts one,batches,budgets,steady --write $(SPEED_PAGE) $(SPEED)
	$(BIN)/python benchmarks/effort.py --write $(SPEED_PAGE) $(SPEED)
	$(BIN)/python benchmarks/speed_own.py --write $(SPEED_PAGE) $(SPEED)
	$(BIN)/python benchmarks/speed_import.py --write $(SPEED_PAGE) $(SPEED)
	$(BIN)/python benchmarks/speed_fit.py --million --write $(SPEED_PAGE) $(SPEED)

# Distances beside proven optima; models and optima stay in build/optimum, so a second run only explains.
optimum: $(VENV)/.test
	$(BIN)/python benchmarks/optimum.py $(OPTIMUM)

# Random tables, rows, rules, models and files against what README promises; each round prints its seed.
fuzz: $(VENV)/.test
	cd tests && $(abspath $(BIN))/python -m fuzz $(FUZZ)

# The wheel and the sdist of the last commit, in dist/: built twice, compared, and looked into.
dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python release/dist.py

# What a stranger does first, away from the source: commands, the service, types, and the fast tests (or TESTS="none").
test-wheel: dist
	$(BIN)/python release/wheel.py $(TESTS)

# Every extra alone, in an environment of its own; EXTRAS="plot web" tries these only, and `bench` needs to be named.
test-extras: dist
	$(BIN)/python release/extras.py $(EXTRAS)

# The fast tests with the oldest and with the newest releases of what the package needs.
test-floors test-newest: test-%: dist
	$(BIN)/python release/window.py $* $(TESTS)

# The eight tables of the benchmark, where ONBMACF_DATA names no folder that has them.
tables: $(VENV)/.base
	$(BIN)/python -m pip install --quiet pooch
	$(BIN)/python release/tables.py build/tables

lint: $(VENV)/.lint
	$(BIN)/codespell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Everything in docs/benchmark/README.md: about two hours of one core, seconds when repeated; stopped, it goes on.
# BENCHMARK="--jobs 1" leaves the other cores alone.
benchmark: $(VENV)/.test
	$(BIN)/python benchmarks/benchmark.py $(BENCHMARK)

# The paper's methods on two small tables; a fresh run each time. compas is fetched unless ONBMACF_DATA names its folder.
bench-smoke: $(VENV)/.test
	rm -rf $(SMOKE)
	$(BIN)/onbmacf bench run --folder $(SMOKE) --datasets saheart,compas --factuals 20 --retrainings 2 --jobs 2 --strict
	$(BIN)/onbmacf bench report --folder $(SMOKE) --out $(SMOKE)/report

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.base: pyproject.toml setup.py $(KERNELS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	touch $@

# The package is installed by now: only what an extra adds is fetched, and no kernel is compiled again.
# A bare torch would pull gigabytes of GPU libraries; this version has a CPU build.
$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet "onbmacf[test]"
	touch $@

$(VENV)/.speed: $(VENV)/.base
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet "onbmacf[speed]"
	touch $@

$(VENV)/.lint: $(VENV)/.base
	$(BIN)/python -m pip install --quiet "onbmacf[lint]"
	touch $@

# Nothing of the package: it is built, and used in environments of its own.
$(VENV)/.release: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet build twine uv
	touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python -m pip install --quiet "onbmacf[docs]"
	touch $@

clean:
	rm -rf $(VENV) .speed dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
