# Two commands set themselves up: `make demo` and `make test`. A second run pays nothing for it. `make help` lists all.
VENV := .venv
EXTRA := test
LOCK := # a file of exact versions to install instead of the newest: make test LOCK=requirements-dev.lock
PYTHON := $(VENV)/bin/python
PYTEST := SCIPY_ARRAY_API=1 $(PYTHON) -m pytest -q
INSTALL := $(if $(shell command -v uv),uv pip install -q --python $(PYTHON),$(PYTHON) -m pip install -q --no-compile --disable-pip-version-check)
BUILD_INPUTS := pyproject.toml setup.py src/priory/core/_kernel/*.pyx src/priory/core/_kernel/*.pxi src/priory/core/_kernel/*.h
KEY := .ready-$(shell cat $(BUILD_INPUTS) | cksum | cut -d' ' -f1)
# the demo takes any environment that is ready, the others one with their extra
READY := $(firstword $(if $(filter report,$(EXTRA)),$(wildcard $(VENV)/$(KEY)*)) $(VENV)/$(KEY)$(filter-out -test,-$(EXTRA)))

.PHONY: help demo test quick lint types tests format docs site examples coverage test-engines engine-tests wheel archives release tour lower-bounds lock figures benchmark clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## the tour on real data: learn, evaluate, explain, forget (installs what that needs, and no more)
	@$(MAKE) --no-print-directory tour EXTRA=report

tour: $(READY)
	@$(PYTHON) -m priory demo

test: lint types tests ## everything: lint, types, all tests and doctests (under ten minutes)

quick: lint types $(READY) ## lint, types and the fast tests (about a minute and a half)
	$(PYTEST) -n auto -m "not slow" --hypothesis-profile=quick

lint: $(READY) ## ruff: rules and format
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(READY) ## mypy
	$(VENV)/bin/mypy

tests: $(READY) ## all tests and doctests
	$(PYTEST) -n auto

format: $(READY) ## format the code, and mend what ruff can mend
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: ## build the documentation site into build/site, in an environment of its own
	$(MAKE) site VENV=.venv-docs EXTRA=docs

site: $(READY)
	MPLBACKEND=agg $(PYTHON) tools/build_docs.py

examples: $(READY) ## run the examples and terminal sessions of the documents, draw their figures, write the notebooks
	$(PYTHON) tools/make_course.py
	$(PYTEST) tests/test_documentation.py tests/test_terminal_sessions.py tests/test_course.py
	for script in docs/figures/*.py; do $(PYTHON) $$script || exit 1; done

test-engines: ## the tests of Dask and Spark, in an environment of their own (Spark needs Java 17)
	$(MAKE) engine-tests VENV=.venv-engines EXTRA=test,dask,spark

engine-tests: $(READY)
	$(PYTEST) tests/engines

coverage: $(READY) ## all tests, and the lines that none of them runs
	$(PYTEST) -n auto --cov=priory --cov-branch --cov-report=term-missing:skip-covered

wheel: ## build sdist and wheel, try the wheel where there is no compiler, and list what it installs (SBOM)
	$(MAKE) archives VENV=.venv-release EXTRA=release

archives: $(READY)
	$(PYTHON) tools/build_archives.py dist
	PYTHON=$(PYTHON) sh tools/try_wheel.sh dist/*.whl

release: test wheel ## everything of a release but the upload: tests, archives built twice with equal bytes, checksums
	.venv-release/bin/python tools/build_archives.py dist --check

lower-bounds: ## all tests with the oldest version of every dependency that pyproject.toml allows (needs uv)
	uv venv -q --allow-existing .venv-lower-bounds
	uv pip install -q --python .venv-lower-bounds/bin/python --resolution lowest-direct -e '.[all]'
	$(MAKE) tests VENV=.venv-lower-bounds

lock: ## renew requirements-dev.lock, the exact versions of the development environment (needs uv)
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
		--no-emit-find-links --custom-compile-command "make lock" --extra test-all --output-file requirements-dev.lock pyproject.toml

figures: $(READY) ## the figures of the code's layout and names, beside their goals
	@$(PYTHON) tools/house_figures.py

benchmark: $(READY) ## measure speed and quality again (writes benchmarks/results)
	$(PYTHON) benchmarks/tables.py
	$(PYTHON) benchmarks/exact.py --write
	$(PYTHON) benchmarks/text.py
	$(PYTHON) benchmarks/trees.py
	$(PYTHON) benchmarks/regression.py
	$(PYTHON) benchmarks/storage.py
	$(PYTHON) benchmarks/leakage.py
	$(PYTHON) benchmarks/exact_forgetting.py --write
	$(PYTHON) benchmarks/threads.py --write
	$(PYTHON) benchmarks/honesty.py
	$(PYTHON) benchmarks/corrections_in_life.py --write
	$(PYTHON) benchmarks/streams.py
	$(PYTHON) benchmarks/no_cliffs.py --seconds 120 --write
	$(PYTHON) benchmarks/cold_start.py --write
	$(PYTHON) benchmarks/quality.py
	$(PYTHON) benchmarks/quality_texts.py
	$(PYTHON) benchmarks/jobs.py --write
	$(PYTHON) benchmarks/streaming_mixed.py --write
	$(PYTHON) benchmarks/installing.py --write
	$(PYTHON) benchmarks/limited_api.py --write
	$(PYTHON) benchmarks/service.py --write
	$(PYTHON) benchmarks/service.py --soak --write
	for part in load soak calls backups; do $(PYTHON) benchmarks/service_crashes.py $$part --write; done
	$(PYTHON) benchmarks/service_fuzz.py --write
	$(PYTHON) benchmarks/service_fuzz.py schemathesis

clean: ## remove what was built
	rm -rf $(VENV) .venv-docs .venv-engines .venv-release .venv-lower-bounds build dist src/*.egg-info src/priory/core/_kernel/*.c src/priory/core/_kernel/*.so

$(READY):
	@test -x $(PYTHON) || (command -v uv >/dev/null && uv venv -q $(VENV)) || python3 -m venv $(VENV)
	@echo "setting up $(VENV) (once)"
	@$(if $(LOCK),$(INSTALL) --require-hashes -r $(LOCK) && $(INSTALL) --no-deps -e .,$(INSTALL) -e '.[$(EXTRA)]')
	@rm -f $(VENV)/.ready-* && touch $@
