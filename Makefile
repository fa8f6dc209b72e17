# `make demo` and `make test` set up everything themselves on a machine with Python 3.11 to 3.13.
VENV ?= .venv
BIN = $(VENV)/bin
# Examples per property test in `make faults`.
EXAMPLES ?= 300

.PHONY: demo test check bench slow faults install lock clean

demo: install
	scripts/get_language_data.sh $(BIN)/python
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo.sh

# One thread per process: more would compete for the cores. Files in the order of tests/conftest.py, longest first.
# Bytecode is kept even if the environment forbids it: hundreds of processes import the package.
test: install
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

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
