# Verbs of the project; `make help` lists them.
export PYTHONSAFEPATH = 1
PORT ?= 8000
MODEL ?= embedded
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup serve test test-slow check format native bench bench-kernels docs chart cluster cluster-down images e2e e2e-core clean

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## Make .venv with everything that is needed (also done by the verbs below)
	@scripts/setup.sh

serve: setup ## Serve MODEL (default: the embedded SmolLM2) on PORT (default: 8000)
	@.venv/bin/octavo serve $(MODEL) --port $(PORT)

test: setup ## Run the tests (minutes)
	@$(PY) -m pytest -q

test-slow: setup ## Run the long forms too (state machines, 10,000 fuzzed bodies, faults)
	@$(PY) -m pytest -q -m ""

check: setup ## Lint, types, import contracts, README tree
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	@$(PY) scripts/readme_tree.py --check

format: setup ## Format the code and bring the README tree up to date
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .
	@$(PY) scripts/readme_tree.py

native: setup ## Build the native CPU kernels again
	@$(PY) kernels/build_native.py

bench: setup ## Serving benchmark beside vLLM and llama.cpp (installs them; an hour the first time)
	@PYTHONPATH=. $(PY) -m benchmarks.serving.compare

bench-kernels: setup ## Kernel benchmarks beside torch
	@for f in benchmarks/kernels/bench_*.py; do $(PY) $$f; done

docs: setup ## Write the generated parts of docs/ anew
	@$(PY) scripts/troubleshooting.py

chart: setup ## Copy the CRD into the chart
	@cp crds/llmdeployments.yaml charts/octavo/files/llmdeployments.yaml

cluster: setup ## Start a two-node Kubernetes on this machine, with Octavo's images (needs root; 15 minutes the first time)
	@PYTHONPATH=. $(PY) -m e2e.cluster up

cluster-down: setup ## Stop it; what was built stays in the cache
	@PYTHONPATH=. $(PY) -m e2e.cluster down

images: setup ## Build the images anew and give them to the running cluster
	@PYTHONPATH=. $(PY) -m e2e.cluster images

e2e: setup ## User stories on the cluster of KUBECONFIG, or on one that is started for them
	@PYTHONPATH=. $(PY) -m pytest -q --log-level=INFO -m "" e2e

e2e-core: setup ## The short form of e2e, which CI runs
	@PYTHONPATH=. $(PY) -m pytest -q --log-level=INFO -m core e2e

clean: ## Remove .venv and build products (dependencies outside the checkout stay)
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find kernels -name '*.so' -delete
