# The targets are for a checkout; `pip install late` needs none of this.

VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
RUNS   := $(VENV)/.installed
DEVELOPS := $(VENV)/.installed-dev
MODELS := $(VENV)/.installed-models
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help

help: ## show this
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r target words; do \
		printf '  make %-12s %s\n' "$$target" "$$words"; done

run: $(RUNS) ## try late on a sample project; fetches or builds the model's runtime if no server answers
	@$(BIN)/python scripts/demo.py $(ARGS)

test: $(MODELS) ## all tests, with the real small model (fetched once)
	$(BIN)/python -m pytest -n 2 -m "not model" $(ARGS)
	$(BIN)/python -m pytest -m model $(ARGS)

test-fast: $(DEVELOPS) ## all tests that need no model
	$(BIN)/python -m pytest -n 2 -m "not model" $(ARGS)

e2e: $(MODELS) ## only the tests with the real small model
	$(BIN)/python -m pytest -m model $(ARGS)

# The types of the in-process runtime can only be checked where it is installed.
lint: $(MODELS) ## style, format, types, direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(MODELS) ## start-up time, size of prompts, cached tokens
	$(BIN)/python -m benchmarks $(ARGS)

bench-tasks: $(MODELS) ## the small tasks with hidden tests, on the real small model
	$(BIN)/python -m benchmarks.tasks $(ARGS)

clean: ## remove the virtual environment and what tools left; the user's cache stays
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# Only what running needs. pip is upgraded for `--group` (25.1), and because it can show its progress to us (24.1).
$(RUNS): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "late needs Python 3.11 or later; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ echo "python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing late into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEVELOPS): $(RUNS)
	@echo "Installing the development tools …"
	@$(BIN)/python -m pip install --quiet --group dev
	@touch $@

# What tests with the real model use: the model, a llama-server, and the in-process runtime.
$(MODELS): $(DEVELOPS)
	@$(BIN)/python scripts/prepare_models.py
	@touch $@

.PHONY: help run test test-fast e2e lint bench bench-tasks clean
