# On a fresh machine `make demo` and `make test` are all the set-up there is.
#
#   make demo    three studies, three pictures          make test              every check but the slow series
#   make venv    only build .venv, with all tools      make test-fast         a minute and a half, for the edit loop
#   make clean   drop caches and build outputs         make test-integration  processes, kills, long statistics
#   make docs    the site, in docs/_build/html: every example is executed, nothing is fetched, a warning is an error
#
# Another interpreter: make PYTHON=/path/to/python3.12 venv (VENV=.venv-3.12 keeps it beside the usual .venv)

PYTHON  ?=
WORKERS ?= 2

VENV  := .venv
BIN   := $(VENV)/bin
# Each is made when a target first asks for it: the package, the tools of its tests, those of its site.
STAMP      := $(VENV)/.installed
TEST_TOOLS := $(VENV)/.installed-test
SITE_TOOLS := $(VENV)/.installed-docs
CODE  := jaxbandits $(sort $(dir $(wildcard experiments/*.py benchmarks/*.py)))
DEMO  := jaxbandits-demo

# A program that one test compiled serves all others, in this run and in the next ones. XLA makes its CPU code for one kind
# of processor, so each kind has a folder of its own. Set JAX_ENABLE_COMPILATION_CACHE=false to do without.
PROCESSOR := $(shell { uname -m; grep -m1 -E '^(flags|Features)' /proc/cpuinfo; } 2>/dev/null | cksum | cut -d' ' -f1)
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax/$(PROCESSOR)
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1

# Before a command whose subject is not what XLA's passes do
QUICKLY := XLA_FLAGS="$$XLA_FLAGS --xla_backend_optimization_level=0"

RECENT := import sys; assert sys.version_info >= (3, 11)

.DEFAULT_GOAL := test
.NOTPARALLEL:
.PHONY: demo docs test test-fast test-integration test-long venv lint format types unit unit-core doctest experiments-smoke other-experiments long-experiments types-and-smoke \
    bench-quick clean

demo: $(STAMP)
	$(BIN)/jaxbandits demo --out $(DEMO)/

docs: $(SITE_TOOLS)
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH="$(CURDIR)" $(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

# The quick checks first, the tests last: their "N passed" is the closing line.
test: lint types-and-smoke doctest unit

# What an edit breaks first: rules, shapes, messages, one engine against another; no statistics, no whole commands.
FAST := tests/core/test_capabilities.py tests/test_house.py tests/engine/test_leap.py tests/core/test_pytrees.py tests/engine/test_dry_run.py \
    tests/test_result.py tests/core/test_streams.py tests/core/test_ticks.py
test-fast: lint
	@$(call beside_types,$(BIN)/python -m pytest $(FAST) -n $(WORKERS) --dist worksteal -q -m 'not slow and not integration and not rows')

# The bits that XLA makes are what these are about. All others ask for formulas, laws and messages, which do not hang on the
# passes of its compiler: without them they take three fifths of the time.
COMPILED := tests/engine tests/numerics $(wildcard $(patsubst %,tests/c*/test_%.py,bits environments policies streams ticks))
# Whose twins and statistics take long; their quick tests are in every run.
FAMILIES := tests/policies tests/environments
# Rows go to whoever is free; files that build something first stay together (loadfile).
SLOW := -n $(WORKERS) --durations=20 -m 'integration and not rows'
test-integration: $(SITE_TOOLS) other-experiments
	$(BIN)/python -m pytest $(COMPILED) --dist worksteal $(SLOW)
	$(QUICKLY) $(BIN)/python -m pytest tests $(patsubst %,--ignore=%,$(COMPILED) $(FAMILIES)) --dist loadfile $(SLOW)
	$(call examples,$(wildcard docs) $(SITE:%=--ignore=%))

venv: $(TEST_TOOLS) $(SITE_TOOLS)

# An interpreter counts only if it runs (a pyenv shim may exist and fail). A .venv that works is kept.
$(STAMP): pyproject.toml
	@if ! $(BIN)/python -c '$(RECENT)' >/dev/null 2>&1; then \
	    chosen=; bare=; \
	    for candidate in "$(PYTHON)" python3.13 python3.12 python3.11 python3; do \
	        [ -n "$$candidate" ] || continue; \
	        if ! "$$candidate" -c '$(RECENT)' >/dev/null 2>&1; then \
	            [ "$$candidate" != "$(PYTHON)" ] || \
	                echo "PYTHON=$$candidate does not run or is older than 3.11; trying others." >&2; \
	        elif ! "$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	            bare="$$bare $$candidate"; \
	        else \
	            chosen=$$candidate; break; \
	        fi; \
	    done; \
	    if [ -z "$$chosen" ] && [ -n "$$bare" ]; then \
	        echo "Found$$bare, but without the venv module. Install it (Debian, Ubuntu: apt install python3-venv)." >&2; \
	        exit 1; \
	    elif [ -z "$$chosen" ]; then \
	        echo "No working Python >= 3.11 found. Install one, or name it: make PYTHON=/path/to/python3.12" >&2; \
	        exit 1; \
	    fi; \
	    echo "Making $(VENV) with $$chosen ($$("$$chosen" --version))"; \
	    "$$chosen" -m venv --clear $(VENV) || exit 1; \
	fi
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	@echo "Installing jaxbandits into $(VENV) (half a minute the first time)"
	@$(call installed,.)
	@touch $@

$(TEST_TOOLS) $(SITE_TOOLS): $(VENV)/.installed-%: $(STAMP)
	@echo "Adding the tools of 'make $*' to $(VENV) (up to a minute the first time)"
	@$(call installed,.[$*])
	@touch $@

# pip would make byte code on one core, of the tests of every package too. It is made here for good: where Python may not
# write any (containers), each start would make it anew.
installed = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '$(1)' && \
    { $(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib jaxbandits || true; }

lint: $(TEST_TOOLS)
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .

format: $(TEST_TOOLS)
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

types: $(TEST_TOOLS)
	$(BIN)/python -m mypy

# Types keep one core busy: something else runs beside them.
beside_types = log=$$(mktemp) || exit 1; $(MAKE) types >"$$log" 2>&1 & \
    $(1); other=$$?; wait $$!; types=$$?; cat "$$log"; rm -f "$$log"; exit $$((other + types))
types-and-smoke: $(TEST_TOOLS)
	@$(call beside_types,$(MAKE) experiments-smoke)

tested = $(BIN)/python -m pytest $(1) -n $(WORKERS) --dist worksteal --durations=20 -m 'not integration and not rows'
unit: $(TEST_TOOLS)
	$(call tested,$(COMPILED))
	$(QUICKLY) $(call tested,tests $(COMPILED:%=--ignore=%))

# Where another Python, jax or NumPy shows first
unit-core: $(TEST_TOOLS)
	@$(call beside_types,$(call tested,tests/core tests/numerics tests/engine/test_native.py))

# What CI has no time for: rows of tables that others stand for, long tests of policies and environments. An hour, before an
# issue ends.
test-long: $(TEST_TOOLS) long-experiments docs
	$(BIN)/python -m pytest tests -n $(WORKERS) --dist worksteal -m rows
	$(BIN)/python -m pytest $(FAMILIES) --dist worksteal $(SLOW)

# In Markdown an example's last line needs an empty line before the closing fence. The pages' examples are played in the slow
# half. What the site executes is left to `make docs`. pytest's 5 says "nothing to run", which is no failure here.
SITE := docs/conf.py docs/_build docs/_ext docs/api docs/auto_gallery docs/gallery
examples = $(QUICKLY) $(BIN)/python -m pytest --doctest-modules --doctest-glob='*.md' $(1) -n $(WORKERS) --dist worksteal --durations=10 || [ $$? -eq 5 ]
doctest: $(TEST_TOOLS)
	$(call examples,jaxbandits $(wildcard README.md))

# The quickest of them in `make test`, some in `make test-integration`, those that compile most in `make test-long`.
QUICKEST := omega_ucb_tails service
DEAREST  := knapsacks omega_ucb rcb rcucb
experiments-smoke: NAMES ?= $(QUICKEST)
other-experiments: NAMES = $(filter-out $(QUICKEST) $(DEAREST),$(shell $(BIN)/python -m experiments --list))
long-experiments: NAMES = $(DEAREST)
experiments-smoke other-experiments long-experiments: $(TEST_TOOLS)
	@[ -n "$(NAMES)" ] || { echo "no experiment to play" >&2; exit 1; }; \
	folder=$$(mktemp -d) || exit 1; \
	trap 'rm -rf "$$folder"' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	printf '%s\n' $(NAMES) | xargs -P $(WORKERS) -I NAME sh -c '\
	    $(BIN)/python -m experiments NAME --quick --out "$$0/NAME" >"$$0/NAME.log" 2>&1; status=$$?; \
	    echo "experiments-smoke: NAME"; cat "$$0/NAME.log"; exit $$status' "$$folder"

bench-quick: $(TEST_TOOLS)
	@if [ ! -f benchmarks/__main__.py ]; then \
	    echo "bench-quick: skipped, there is no benchmarks/__main__.py"; \
	else \
	    $(BIN)/python -m benchmarks --quick; \
	fi

clean:
	rm -rf build dist *.egg-info .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis $(DEMO) docs/_build docs/api docs/auto_gallery
	find $(CODE) $(wildcard tests docs) -name __pycache__ -type d -prune -exec rm -rf {} +
