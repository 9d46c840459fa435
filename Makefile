# Everything runs in a virtual environment that the first call creates. Needs Python 3.11+ and make; with a C++ compiler
# the fast CPU backend works too. With an NVIDIA GPU: make run EXTRAS=cuda13 (or cuda12), in a new environment.
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?=
JOBS ?= 2

BIN := $(VENV)/bin

.PHONY: run test test-slow lint docs

run: $(VENV)/.installed
	$(BIN)/simengine run ant

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "(slow or sanitizer) and not gpu"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_NUM_WORKERS=$(JOBS) $(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -j $(JOBS) -d out/doctrees docs out/docs

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "simengine needs Python 3.11 or later; call make with PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -qq --editable '.$(if $(EXTRAS),[$(EXTRAS)])'
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -qq --editable '.[dev]'
	touch $(VENV)/.installed $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -qq --editable '.[docs]'
	touch $(VENV)/.installed $@
