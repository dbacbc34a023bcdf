# Two commands for newcomers: `make demo` and `make test`. Everything installs itself into .venv.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo quick test test-long lint format bench bench-long docs clean

# One stamp per extra: nothing is installed again unless pyproject.toml changed.
$(VENV)/bin/python:
	@echo "Setting up $(VENV) (once; with what follows, one or two minutes) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	@echo "Installing Tacit and what it needs into $(VENV) ..."
	@$(PIP) -e '.[plot,pandas]' && touch $@

$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	@echo "Installing what '$*' needs into $(VENV) ..."
	@$(PIP) -e '.[$*]' && touch $@

demo: $(VENV)/.base
	$(BIN)/tacit demo

quick: $(VENV)/.test-quick
	$(BIN)/python -m pytest --quick -n 2 --dist worksteal

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not long" -n 2 --dist worksteal

test-long: $(VENV)/.test
	$(BIN)/python -m pytest -m long --hypothesis-profile long

lint: $(VENV)/.lint
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/lint-imports

format: $(VENV)/.lint
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py $(ONLY)

bench-long: $(VENV)/.test
	$(BIN)/python benchmarks/tables.py 1e8
	$(BIN)/python benchmarks/engines.py 1e6 1e7 --growth

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -E -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache
