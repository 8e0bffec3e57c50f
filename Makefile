# Two commands do everything: `make run` and `make test`. The rest is for people who change Satchel.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
Q      ?= how is the token budget kept?
P      ?= .
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# pip does not compile them for `make test`: most of what comes with them (the Kubernetes client of Chroma) is never used.
LARGE  := chromadb, fastembed, rapidocr, sentence_transformers

COVERED := build/coverage.txt
SITE   := $(BIN)/python -m sphinx -b html -q -W --keep-going docs build/docs

# The tests start Satchel hundreds of times: without stored bytecode each of these processes compiles it again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run serve test test-pythons docs setup format soak fuzz bench clean

help:            ## what there is
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Through the environment, so that no quote or dollar sign in a question means anything to make or the shell.
run: export SATCHEL_Q := $(value Q)
run: export SATCHEL_P := $(value P)
run: $(VENV)/.run   ## index P=path and print a context for Q="question"
	@$(BIN)/satchel build "$$SATCHEL_Q" "$$SATCHEL_P"

serve: export SATCHEL_P := $(value P)
serve: $(VENV)/.run ## serve P=path: API, MCP and the inspector page
	@$(BIN)/satchel serve "$$SATCHEL_P"

test: $(VENV)/.dev  ## formatting, lint, types, import contracts, all tests and how much of the code they run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	@scripts/together.sh "$(BIN)/mypy" "$(SITE)" "scripts/warm.sh $(BIN)/python" '$(BIN)/python -c "import $(LARGE)"'
	@rm -rf build/coverage
	$(BIN)/coverage run -m pytest -n 3
	$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report >$(COVERED); code=$$?; tail -n 4 $(COVERED); echo "each module is in $(COVERED)"; exit $$code

test-pythons:    ## the tests on each Python from 3.11 to 3.14 that is found here (PYTHONS="3.12 3.13", T="tests/text -k law")
	@scripts/pythons.sh $(T)

docs: $(VENV)/.dev  ## the documentation as a site in build/docs; every warning is an error
	$(SITE)

format: $(VENV)/.dev ## rewrite the files as the formatter wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: $(VENV)/.dev  ## the slow tests, every route with odd requests (REQUESTS=… for each), 100,000 random assemblies (N=…), 200 kills of an index run (KILLS=…), 1,000 damages to an index (DAMAGES=…), 200,000 builds by random users (BUILDS=…)
	$(BIN)/python -m pytest -m slow -n 2
	HYPOTHESIS_EXAMPLES=$(or $(REQUESTS),1200) $(BIN)/python -m pytest -n 2 tests/http/test_schema.py
	$(BIN)/python scripts/soak.py --count $(or $(N),100000)
	$(BIN)/python scripts/soak_index.py --kills $(or $(KILLS),200)
	$(BIN)/python scripts/soak_damage.py --damages $(or $(DAMAGES),1000)
	$(BIN)/python scripts/soak_workspace.py --builds $(or $(BUILDS),200000)

fuzz: $(VENV)/.dev  ## the Hypothesis laws with many more examples (EXAMPLES=… to change)
	HYPOTHESIS_PROFILE=fuzz HYPOTHESIS_EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/python -m pytest -n 2 tests -k law

bench: $(VENV)/.dev ## Satchel beside its peers, and every part; writes docs/benchmarks.md (BENCH=full for everything, PARTS=scoreboard,index)
	@scripts/system.sh bench
	$(BIN)/python benchmarks/run.py $(if $(PARTS),--parts $(PARTS))

setup: $(VENV)/.dev ## a virtual environment with everything a developer needs

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=24"

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[documents,serve]"
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@scripts/together.sh scripts/system.sh '$(PIP) --no-compile -e ".[dev,dev-models]" bm25s'
	@touch $@ $(VENV)/.run

clean:           ## remove the virtual environment and caches
	rm -rf $(VENV) .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build
