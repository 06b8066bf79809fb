# Short doors to the commands. Each makes the virtual environment that it needs; CI goes through them too.
#
#   make demo            real failures, retried, buried, fixed and redriven, on a private PostgreSQL
#   make test            everything; ARGS="tests/migrations -k lock" for some of it
#   make test PG=18      the same on another major version
#   make lint            what can be seen without running it
#   make bench           how fast it is, on a private PostgreSQL; ARGS="--only wakeup" for some of it
#   make reference       docs/sql-reference.md again, from the comments of the functions

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench reference clean

demo: .venv/demo
	$(BIN)/python -m tools.demo $(ARGS)

test: .venv/dev
	$(BIN)/python -m tools.test $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.lint_sql

bench: .venv/bench
	$(BIN)/python -m tests.bench $(ARGS)

reference: .venv/dev
	$(BIN)/python -m tools.reference

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# What is installed, and for whom: the file is as old as the installation.
.venv/demo .venv/dev .venv/bench: .venv/%: pyproject.toml | .venv
	$(BIN)/pip install -qq --disable-pip-version-check --editable '.[$*]'
	touch $@

.venv:
	$(PYTHON) -m venv $@
