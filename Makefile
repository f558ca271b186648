# Every target sets itself up from a bare checkout: python3 (3.11 or later) is all it needs.
# After the first set-up only `make pins`, `make packaging` and the first `make interop` use the network.

VENV := .venv
BIN  := $(VENV)/bin
READY := $(VENV)/.ready
# The first of these that is Python 3.11 or later; `make PYTHON=/path/to/python test` overrides it.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-live test check fix bench bench-page interop interop-ci slow faults packaging pins clean

help: ## Say what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | column -t -s '|' 2>/dev/null || grep '##' Makefile

setup: $(READY) ## Make the virtual environment

demo: $(READY) ## Agents trade a year of real prices, journal every order, and explain one trade from memory
	$(BIN)/deskbook demo

demo-live: $(READY) ## The same agents on the wall clock for a minute, a real trading day a second
	$(BIN)/deskbook demo --live

test: $(READY) ## The quick tiers of tests; no network
	$(BIN)/pytest -n auto --dist loadfile $(ARGS)

check: $(READY) ## Lint, formatting, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fix: $(READY) ## Mend what ruff can mend by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure and print
	$(BIN)/pytest -m bench -s $(ARGS)

# Fills a ledger of a million memories first, which takes its time; BENCH_KEEP=DIR keeps it for the next run.
bench-page: $(READY) ## The same with a million memories, written to docs/benchmarks.md
	BENCH_PAGE=docs/benchmarks.md BENCH_RECALL_ENTRIES=1000000 $(BIN)/pytest -m bench -s $(ARGS)

interop: $(READY) ## Every client of the table against a real server; prints the matrix
	$(BIN)/pytest -m "interop or interop_more" $(ARGS)

interop-ci: $(READY) ## Of these, the clients and official tools that every change is tried with
	$(BIN)/pytest -m interop $(ARGS)

slow: $(READY) ## Long walks through many real processes: the demo, publishing, embedding, every profile on every wire
	$(BIN)/pytest -m slow -n auto --dist loadfile $(ARGS)

faults: $(READY) ## Kills, full disks, slow locks, long races
	$(BIN)/pytest -m faults $(ARGS)

packaging: $(READY) ## Build the wheel, install it into an empty environment, run it from /
	$(BIN)/pytest -m packaging $(ARGS)

# Anew from the ranges in pyproject.toml, in an environment of its own. Read the difference before committing it.
pins: ## Write constraints.txt anew
	@$(require-python)
	rm -rf .pins && "$(PYTHON)" -m venv .pins
	.pins/bin/python $(PIP_INSTALL) --editable '.[dev]'
	(sed -n '/^#/p' constraints.txt && .pins/bin/python -m pip freeze --exclude-editable --all --exclude setuptools \
		--exclude pip | LC_ALL=C sort -f) > .pins/constraints.txt
	mv .pins/constraints.txt constraints.txt && rm -rf .pins

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) .venv-interop .pins build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

define require-python
test -n "$(PYTHON)" || { echo "Deskbook needs Python 3.11 or later and found none: \
install one, or say make PYTHON=/path/to/python3" >&2; exit 1; }
endef

# The build backend goes in first and without isolation, so that it too is the pinned one.
$(READY): pyproject.toml constraints.txt
	@$(require-python)
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt hatchling editables
	$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@
