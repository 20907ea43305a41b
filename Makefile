# Two commands matter: `make demo` and `make test`. Everything they need is installed into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Tests start Python hundreds of times: it keeps what it has compiled, also where the machine says that it should not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast fuzz soak lint bench docs clean

demo: $(INSTALLED)
	$(BIN)/fouriscope demo --out demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --durations=10 $(PYTEST)

test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" $(PYTEST)

fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzz $(FUZZ)

soak: $(INSTALLED)
	$(BIN)/python -m benchmarks soak $(SOAK)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m benchmarks

# Executes the gallery and the tutorials; a warning is an error. Open site/index.html: it needs no server and no network.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

$(INSTALLED): pyproject.toml setup.py src/fouriscope/__init__.py
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fouriscope needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.11 demo")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo site
