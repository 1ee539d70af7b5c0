# Needs python3 >= 3.11, make and a package index; everything else is installed into .venv here.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check types docs bench bench-load bench-evaluators bench-calls fuzz clean

demo: .venv/run-ready
	@sh docs/demo.sh $(BIN)/assay

test: .venv/dev-ready
	$(BIN)/pytest

check: .venv/dev-ready
	$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/lint-imports --no-logo

types: .venv/dev-ready
	$(BIN)/pyright

bench: .venv/dev-ready
	$(BIN)/pytest -m bench -n 0 -s tests/bench

bench-load: .venv/dev-ready
	$(BIN)/python tests/bench/load.py 100000 1000000 5000000

bench-evaluators: .venv/dev-ready .venv-bench/ready
	$(BIN)/python tests/bench/metrics.py .venv-bench/bin/python 10000 100000 1000000

bench-calls: .venv/dev-ready
	$(BIN)/python tests/bench/calls.py 12000 32 128 512
	$(BIN)/python tests/bench/judging.py 12000 128
	$(BIN)/python tests/bench/limits.py
	$(BIN)/python tests/bench/kills.py
	$(BIN)/python tests/bench/ledger.py 10000000

docs: .venv/dev-ready
	$(BIN)/assay evaluators --format md --out docs/evaluators.md
	$(BIN)/assay evaluators --kind judge --format md --out docs/judges.md

fuzz: .venv/dev-ready
	$(BIN)/python tests/fuzz/readers.py 600

clean:
	rm -rf .venv .venv-bench .assay .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/run-ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . && touch $@

.venv/dev-ready: .venv/run-ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev && touch $@

.venv-bench/ready:
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet azure-ai-evaluation==1.18.10 && touch $@
