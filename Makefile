# `make help` lists the targets. Each sets up what it needs: uv if there is none, .venv from uv.lock.

UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
BIN := .venv/bin
JOBS ?= 2

# One environment, in this folder, whatever the shell had active.
export UV_PROJECT_ENVIRONMENT := .venv
unexport VIRTUAL_ENV
unexport PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help setup check format test demo bench conformance docs clean

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.uv/bin/uv:
	@scripts/bring-uv >/dev/null

setup: $(if $(findstring .uv/bin/uv,$(UV)),.uv/bin/uv)  ## Create .venv from uv.lock
	@$(UV) sync --frozen --quiet

check: setup  ## Check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup  ## Format and fix what can be fixed
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

test: setup  ## Run all tests and gates
	$(BIN)/python -m pytest -n $(JOBS) tests evals/gates

demo: setup  ## Index this repository and look around
	@$(BIN)/python scripts/demo.py

bench: setup  ## Run the benchmarks (fetches Django's sources; minutes)
	@set -e; for file in $$(grep -l '__name__ == "__main__"' evals/bench/*.py); do \
		$(BIN)/python -m evals.bench.$$(basename $$file .py); done

conformance: setup  ## Hold the MCP server against the public suite (fetches it from npm; a minute)
	@UV="$(UV)" $(BIN)/python -m evals.mcp_conformance $(ARGS)

docs: setup  ## Regenerate docs/cli.md from the commands
	$(BIN)/python -m kb.cli.reference docs/cli.md

clean:  ## Remove caches and build output (keeps .venv and databases)
	rm -rf build dist .bench .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests evals migrations scripts -name __pycache__ -type d -prune -exec rm -rf {} +
