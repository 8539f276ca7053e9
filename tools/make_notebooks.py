"""Writes the pages of the course as notebooks into notebooks/; tests/test_notebooks.py runs them."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(page for page in (ROOT / "docs" / "course").glob("*.md") if page.name != "index.md")
FENCE = re.compile(r"```(\w+|\{image\}[^\n]*)\n(.*?)```\n?", re.DOTALL)
SITE = "../docs/course/"


def make_notebook(page: Path) -> dict:
    """The page as a notebook: its text, and its examples without their output."""
    text = page.read_text(encoding="utf-8")
    cells, at = [], 0
    for block in FENCE.finditer(text):
        cells.append(make_cell("markdown", link_pages(text[at : block.start()])))
        if block.group(1) == "python":
            cells.append(make_cell("code", extract_code(block.group(2))))
        at = block.end()
    cells.append(make_cell("markdown", link_pages(text[at:])))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [cell | {"id": f"cell-{n}"} for n, cell in enumerate(cell for cell in cells if cell["source"])]
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def extract_code(block: str) -> str:
    """The statements of a doctest, without prompts and results; what raises an error is shown, not run."""
    lines = block.splitlines()
    code = []
    for number, line in enumerate(lines):
        if line.startswith((">>> ", "... ")) or line == "...":
            fails = line.startswith(">>> ") and lines[number + 1 : number + 2] == ["Traceback (most recent call last):"]
            code.append(("# raises an error: " if fails else "") + line[4:])
    return "\n".join(code)


def link_pages(text: str) -> str:
    """Text whose links lead from notebooks/ to the pages."""
    return re.sub(r"\]\((?!https?:)([^)]+)\)", rf"]({SITE}\1)", text).strip()


def make_cell(kind: str, source: str) -> dict:
    cell = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def render_notebook(page: Path) -> str:
    """The notebook of a page as the text of its file."""
    return json.dumps(make_notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    folder = ROOT / "notebooks"
    folder.mkdir(exist_ok=True)
    for page in PAGES:
        (folder / f"{page.stem}.ipynb").write_text(render_notebook(page), encoding="utf-8")
