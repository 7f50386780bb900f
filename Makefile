# The four commands of CONTRIBUTING.md.  PYTHON may name another interpreter: make PYTHON=python3.12 test
PYTHON ?= python3

.PHONY: install check format test slow docs

install:
	$(PYTHON) -m pip install -e '.[dev]'

check:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

test:
	$(PYTHON) -m pytest

slow:
	$(PYTHON) -m pytest -n 0 -m slow

docs:
	$(PYTHON) docs/make_tables.py
