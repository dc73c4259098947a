# The book's commands. `make help` lists them.
PYTHON ?= python3
PORT ?= 8000
PY := .venv/bin/python

.PHONY: help book serve test unit lint format bench execute figures links pdf zip test-gpu book-gpu repository clean ready built
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1@/' | column -t -s @

book: built  ## set up .venv and the browser assets, then build the book into _build/html
	@echo "The book is in $(CURDIR)/_build/html/index.html"
	@echo "Serve it with: make serve   (reading needs no server; the live forms do)"

serve: built  ## serve the built book on http://127.0.0.1:8000/ (PORT=... to change)
	@$(PY) -m tfbook.site.serve $(PORT)

test: lint built  ## lint, unit tests, every notebook, and the built site in a browser
	@$(PY) -m pytest -n 2 --dist loadfile --nbval chapters tests --ignore tests/gpu

unit: ready  ## the unit tests alone: no browser, no notebooks, no new environments
	@$(PY) -m pytest -q tests --ignore tests/site --ignore tests/gpu --ignore tests/launch --ignore tests/test_notebooks.py

lint: ready  ## check style and types, of code and notebooks
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check . || { echo "make format mends this" >&2; exit 1; }
	@$(PY) -m mypy
	@$(PY) -m codespell_lib .

format: ready  ## put code and notebooks into the house style
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: built  ## measure how long a reader waits for the page's Python
	@$(PY) -m benchmarks.page

execute: ready  ## run every notebook again and keep its outputs
	@$(PY) -m tfbook.site.execute chapters/*.ipynb

figures: ready  ## draw the pictures of the Markdown pages again
	@$(PY) -m tfbook.figures

links: built  ## check every link of the built book; the external ones are asked, if there is a network
	@$(PY) -m tfbook.site.links

pdf: built  ## the book on paper: _build/the-transformer-executable.pdf
	@$(PY) -m tfbook.site.paper

zip: built  ## the built book as one file to hand on: _build/the-transformer-executable.zip
	@cd _build/html && $(CURDIR)/$(PY) -m zipfile -c ../the-transformer-executable.zip .
	@echo "$(CURDIR)/_build/the-transformer-executable.zip"

test-gpu: ready  ## the model on a GPU against the CPU; skips, visibly, where there is none
	@TFBOOK_DEVICE=cuda $(PY) -m pytest -q -rs tests/gpu

book-gpu: ready  ## run the chapters with TFBOOK_DEVICE=cuda and build them into _build/gpu
	@TFBOOK_DEVICE=$${TFBOOK_DEVICE:-cuda} $(PY) -m tfbook.site.elsewhere _build/gpu

repository: ready  ## name the book's public home in the files that must: URL=https://github.com/you/book
	@$(PY) -m tfbook.site.rename "$(URL)"

clean:  ## remove what was built (.venv and node_modules stay)
	@rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Two scripts decide what is out of date; with nothing to do they take a blink.
ready:
	@$(PYTHON) tfbook/site/environment.py

built: ready
	@$(PY) tfbook/site/build.py
