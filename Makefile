# The book's commands. `make help` lists them.
PYTHON ?= python3
PORT ?= 8000
PY := .venv/bin/python
READY := .venv/.installed
BUILT := _build/html/.built
# Everything that a built page depends on.
SOURCES := $(shell find chapters tfbook -type f ! -path '*/__pycache__/*' ! -path '*/.ipynb_checkpoints/*')

.PHONY: help book serve test unit lint format bench execute figures clean setup
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1@/' | column -t -s @

book: $(BUILT)  ## set up .venv and the browser assets, then build the book into _build/html
	@echo "The book is in $(CURDIR)/_build/html/index.html"
	@echo "Serve it with: make serve   (reading needs no server; the live forms do)"

serve: $(BUILT)  ## serve the built book on http://127.0.0.1:8000/ (PORT=... to change)
	@echo "http://127.0.0.1:$(PORT)/   (Ctrl+C stops)"
	@$(PY) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

test: lint $(BUILT)  ## lint, unit tests, every notebook, and the built site in a browser
	@$(PY) -m pytest -n 2 --dist loadfile --nbval chapters tests

unit: $(READY)  ## the unit tests alone: no browser, no notebooks
	@$(PY) -m pytest -q tests --ignore tests/site

lint: $(READY)  ## check style and types, of code and notebooks
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --quiet --check . || { echo "make format mends this" >&2; exit 1; }
	@.venv/bin/mypy

format: $(READY)  ## put code and notebooks into the house style
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

bench: $(BUILT)  ## measure how long a reader waits for the page's Python
	@$(PY) -m benchmarks.page

execute: $(READY)  ## run every notebook again and keep its outputs
	@$(PY) -m tfbook.site.execute chapters/*.ipynb

figures: $(READY)  ## draw the pictures of the Markdown pages again
	@$(PY) -m tfbook.figures

clean:  ## remove what was built (.venv and node_modules stay)
	@rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment: a script decides what is out of date, so that one place knows how.
$(READY): pyproject.toml constraints.txt package.json package-lock.json tfbook/site/environment.py
	@$(PYTHON) tfbook/site/environment.py
	@touch $@

# With --all: Sphinx does not notice every change (titles in sidebars, scripts), and a build takes seconds.
$(BUILT): $(READY) _config.yml _toc.yml $(SOURCES)
	@$(PY) -m tfbook.site.build
	@touch $@
