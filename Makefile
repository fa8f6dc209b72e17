# `make demo` and `make test` set up everything themselves on a machine with Python 3.11 to 3.13.
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test check bench slow install lock clean

demo: install
	scripts/get_language_data.sh $(BIN)/python
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo.sh

test: install
	$(BIN)/pytest

slow: install
	$(BIN)/pytest -m slow

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	$(BIN)/python benchmarks/encode_speed.py
	$(BIN)/python benchmarks/memory_million.py

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml requirements.lock
	scripts/install.sh $(VENV)

# Write the lock anew from what the newest releases resolve to.
lock:
	scripts/lock.sh

clean:
	rm -rf $(VENV) demo-work
