"""The course as notebooks: they are what tools/make_notebooks.py makes of the pages, and every cell runs."""

import json

import pytest

import make_notebooks
from paths import ROOT

pages = pytest.mark.parametrize("page", make_notebooks.PAGES, ids=lambda page: page.stem)


@pages
def test_a_notebook_is_up_to_date(page):
    notebook = ROOT / "notebooks" / f"{page.stem}.ipynb"
    assert notebook.read_text(encoding="utf-8") == make_notebooks.render_notebook(page), "run tools/make_notebooks.py"


@pytest.mark.slow
@pages
def test_every_cell_runs(page, capsys):
    notebook = json.loads((ROOT / "notebooks" / f"{page.stem}.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{page.stem}.ipynb", "exec"), names)
    assert len(names) > 1
