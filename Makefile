# `make demo` and `make test` set up everything themselves on a machine with Python 3.11 to 3.13.
VENV ?= .venv
BIN = $(VENV)/bin
# Examples per property test in `make faults`.
EXAMPLES ?= 300
# Which tests `make test` runs: an expression of pytest's markers. By default those of pyproject.toml.
SELECT ?=
# What is imported is compiled once, even if the environment forbids to keep bytecode. Hundreds of processes import it;
# to compile the whole environment, of which they use a fifth, would take longer.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test check bench slow faults install lock clean

demo: install
	scripts/get_language_data.sh $(BIN)/python
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo.sh

# One thread per process: more would compete for the cores. Files in the order of tests/conftest.py, longest first.
test: install
	OMP_NUM_THREADS=1 $(BIN)/pytest $(if $(SELECT),-m '$(SELECT)') \
		-n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

slow: install
	$(BIN)/pytest -m slow

# Takes half an hour on two cores: 10,000 runs with an injected fault, then the property tests with many examples.
faults: install
	PYTHONPATH=tests $(BIN)/python -m faults.campaign --runs 10000 --planted
	SENTCOMPRESS_PROPERTY_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/properties

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	$(BIN)/python benchmarks/encode_speed.py
	$(BIN)/python benchmarks/shards.py --sentences 150000 --shards 1 3 16 --kills 10 --whole

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml requirements.lock
	scripts/install.sh $(VENV)

# Write the lock anew from what the newest releases resolve to.
lock:
	scripts/lock.sh

clean:
	rm -rf $(VENV) demo-work
