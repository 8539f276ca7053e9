# Two commands do all the set-up: `make demo` and `make test`. A second run pays none of it.
VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready-$(shell cat pyproject.toml src/priory/_kernel/*.pyx src/priory/_kernel/*.pxi | cksum | cut -d' ' -f1)

.PHONY: demo test lint types tests benchmark clean

demo: $(READY)
	@$(PYTHON) -m priory demo

test: lint types tests

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(READY)
	$(VENV)/bin/mypy

tests: $(READY)
	SCIPY_ARRAY_API=1 $(PYTHON) -m pytest -q -n auto

benchmark: $(READY)
	$(PYTHON) benchmarks/tables.py
	$(PYTHON) benchmarks/text.py
	$(PYTHON) benchmarks/trees.py
	$(PYTHON) benchmarks/averaging.py
	$(PYTHON) benchmarks/regression.py
	$(PYTHON) benchmarks/storage.py
	$(PYTHON) benchmarks/leakage.py
	$(PYTHON) benchmarks/quality.py

clean:
	rm -rf $(VENV) build src/*.egg-info src/priory/_kernel/*.c src/priory/_kernel/*.so

$(READY):
	@test -x $(PYTHON) || (command -v uv >/dev/null && uv venv -q $(VENV)) || python3 -m venv $(VENV)
	@echo "setting up $(VENV) (once)"
	@if command -v uv >/dev/null; then uv pip install -q --python $(PYTHON) -e '.[test]'; \
	 else $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[test]'; fi
	@rm -f $(VENV)/.ready-* && touch $@
