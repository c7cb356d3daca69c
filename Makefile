PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint deploy/constraints.txt
export PIP_PROGRESS_BAR = off

.DEFAULT_GOAL := help
.PHONY: help install eval test test-all mutants lint benchmarks clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.installed ## make .venv and install what kbgate needs to run

eval: install ## evaluate the bundled suite and print its verdict
	$(BIN)/kbgate evaluate baselines/medication

lint: $(VENV)/.test ## ruff's rules and format, and mypy's types
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

test: lint ## lint, types, tests and what they cover (about 7 minutes on 2 cores)
	$(BIN)/pytest -n 2 --dist worksteal --lines

test-all: $(VENV)/.test ## what make test leaves out as slow: public collections, servers (about 25 minutes)
	$(BIN)/pytest -n 2 --dist worksteal -m slow

mutants: $(VENV)/.mutants ## is there a line that could be wrong and no test would say so? (an hour; SEED=0)
	$(BIN)/python -m tests.mutants --seed $(or $(SEED),0)

benchmarks: $(VENV)/.test ## measured ratios behind the README's figures
	$(BIN)/python -m pytest tests/benchmarks -m "slow or not slow" -s

clean: ## remove the environment and every run
	rm -rf $(VENV) .kbgate

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml deploy/constraints.txt | $(BIN)/python
	$(PIP) torch --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(PIP) torch --editable '.[test]'
	# mypy finds a namespace package only as a folder of that name.
	mkdir -p $(VENV)/typed/kbgate && ln -sfn $(CURDIR)/flows $(CURDIR)/tasks $(CURDIR)/reports $(VENV)/typed/kbgate/
	@touch $@

$(VENV)/.mutants: $(VENV)/.test
	$(PIP) --editable '.[mutants]'
	@touch $@
