"""Writes what is made from the pages of the course: `python tools/make_course.py` after a change of a page.

With `--results` the examples of the pages get the results that they really have first; look at the difference.

1. The section "Exercises" of each page, from src/priory/bayes/exercises.toml.
2. The index of the lecture notes in docs/course/index.md, from docs/course/notes.toml.
3. The figures of the pages, drawn by their examples, into docs/figures/course: light and dark.
4. The pages as notebooks with all results and figures into notebooks/.

The tests compare all of it with what is in the repository.
"""

import ast
import doctest
import json
import re
import sys
from pathlib import Path

from check_course import format_coverage, write_notes_index
from course_pages import COURSE, PAGES, ROOT, Block, Cell, RunPage, darken, run_example, run_page
from priory.bayes.course import Exercise, list_exercises

FIGURES, NOTEBOOKS = ROOT / "docs" / "figures" / "course", ROOT / "notebooks"
SITE = "../docs/course/"
HEADING = "## Exercises\n"
INTRODUCTION = """
Type an answer on the site, or check it in Python: `check` says whether it is right, or which mistake it looks like.

```python
>>> from priory.bayes.course import check

```
"""
EXERCISE = """
<div class="exercise" id="{name}" data-exercise="{name}">

**{name}.** {question}

</div>

<details>
<summary>Solution of {name}</summary>

{solution}

```python
{code}
>>> check("{name}", answer)
Right.

```

</details>
"""


def write_results(page: Path) -> str:
    """The text of a page whose examples, up to the exercises, have the results that they really have."""
    text, heading, rest = page.read_text(encoding="utf-8").partition(HEADING)
    names = {"__name__": "__main__"}

    def run_block(found: re.Match) -> str:
        lines = []
        for example in doctest.DocTestParser().get_examples(found[1]):
            cell = run_example(example.source, names, may_fail=example.exc_msg is not None)
            lines.append(add_prompts(example.source.rstrip("\n")))
            if cell.error:
                lines += ["Traceback (most recent call last):", "    ...", cell.error]
            shown = [line.rstrip() for part in (cell.printed, cell.value) for line in part.splitlines()]
            lines += [line or "<BLANKLINE>" for line in shown]
        return "```python\n" + "\n".join(lines) + "\n\n```"

    return re.sub(r"```python\n(.*?)\n*```", run_block, text, flags=re.DOTALL) + heading + rest


def write_exercises(page: Path) -> str:
    """The text of a page with its exercises under their heading, and with the notes that it covers."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(
        r"<!-- covers -->\n(\nThis page .*\n)?", lambda _: f"<!-- covers -->\n\n{format_coverage(page.stem)}\n", text
    )
    start = text.index(HEADING) + len(HEADING)
    end = text.index("\n## ", start)
    exercises = "".join(format_exercise(one) for one in list_exercises(page.stem))
    return text[:start] + INTRODUCTION + exercises + text[end:]


def format_exercise(exercise: Exercise) -> str:
    return EXERCISE.format(
        name=exercise.name,
        question=exercise.question,
        solution=exercise.solution,
        code=add_prompts(exercise.code),
    )


def add_prompts(code: str) -> str:
    """Statements as examples of a doctest.

    >>> add_prompts("a = [\\n    1,\\n]\\nb = 2").splitlines()
    ['>>> a = [', '...     1,', '... ]', '>>> b = 2']
    """
    starts = {statement.lineno for statement in ast.parse(code).body}
    lines = enumerate(code.splitlines(), start=1)
    return "\n".join(f"{'>>>' if number in starts else '...'} {line}".rstrip() for number, line in lines)


def make_notebook(run: RunPage) -> dict:
    """A page as a notebook: its text, and its examples with results and figures."""
    cells = []
    for part in run.parts:
        if isinstance(part, Cell):
            cells.append(make_code_cell(part))
        elif text := clean_text(part.text):
            cells.append(make_text_cell(text))
        if isinstance(part, Block) and part.kind == "exercise":
            name = re.search(r'data-exercise="([\w-]+)"', part.text)[1]
            cells.append(make_code_cell(Cell(f'check("{name}", ...)', value="Put your answer in place of the dots.")))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def clean_text(text: str) -> str:
    """Text of a page for a notebook: links lead from notebooks/ to the pages, and what only a page needs is gone."""
    text = re.sub(r"^</?div[^>]*>\n?|^<!--.*?-->\n", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({SITE}\1)", text).strip()


def make_text_cell(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def make_code_cell(cell: Cell) -> dict:
    """A cell with its outputs; what raises an error does not stop the notebook."""
    outputs = []
    if cell.printed:
        outputs.append({"name": "stdout", "output_type": "stream", "text": cell.printed.splitlines(keepends=True)})
    data = {"text/plain": cell.value.splitlines(keepends=True)} if cell.value else {}
    if cell.picture:
        data = {"image/svg+xml": cell.picture.splitlines(keepends=True), "text/plain": ["<Figure>"]}
    if data:
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    if cell.error:
        name, _, message = cell.error.partition(": ")
        outputs.append({"ename": name, "evalue": message, "output_type": "error", "traceback": [cell.error]})
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": ["raises-exception"]} if cell.error else {},
        "outputs": outputs,
        "source": cell.source.splitlines(keepends=True),
    }


def write_files(page: Path) -> dict[Path, str]:
    """The figures and the notebook of a page, by their paths."""
    run = run_page(page)
    written = {NOTEBOOKS / f"{page.stem}.ipynb": json.dumps(make_notebook(run), indent=1, ensure_ascii=False) + "\n"}
    for name, svg in run.figures.items():
        written |= {FIGURES / f"{name}.svg": svg, FIGURES / f"{name}-dark.svg": darken(svg)}
    return written


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    NOTEBOOKS.mkdir(exist_ok=True)
    written = {COURSE / "index.md": write_notes_index()}
    for page in PAGES:
        if "--results" in sys.argv:
            page.write_text(write_results(page), encoding="utf-8")
        page.write_text(write_exercises(page), encoding="utf-8")
        written |= write_files(page)
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    for stale in (*FIGURES.glob("*.svg"), *NOTEBOOKS.glob("*.ipynb")):
        if stale not in written:
            stale.unlink()


if __name__ == "__main__":
    main()
