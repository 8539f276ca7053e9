"""Builds the documentation site into build/site: `make docs` calls it in an environment of its own.

The pages of docs/ are staged in build/docs together with the results of the benchmarks, the changelog and an API
reference of every public name, and Sphinx turns them into HTML. A warning is an error.
"""

import argparse
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import priory
from course_pages import PAGES as COURSE_PAGES
from priory.bayes.course import list_exercises

ROOT = Path(__file__).resolve().parents[1]
STAGE, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"

SCRIPTS = ROOT / "src" / "priory" / "service" / "pages" / "static"  # of the figures that can be dragged
PICTURE = re.compile(r'<picture>\n.*?<img alt="([^"]*)" src="([^"]*)\.svg">\n</picture>', re.DOTALL)
THEMED_PICTURE = """```{{image}} {path}.svg
:alt: {alt}
:class: only-light
```

```{{image}} {path}-dark.svg
:alt: {alt}
:class: only-dark
```"""
EMPTY_END_OF_BLOCK = re.compile(r"(```python\n[^`]*?)\n+```")  # doctest needs an empty line there, readers do not

PUBLIC_MODULES = {
    "priory": "Models, scores, files",
    "priory.families": "Families: likelihoods with their priors",
    "priory.naive_bayes": "Naive Bayes for arrays",
    "priory.regression": "The prior of a regression",
    "priory.bayes": "The rules of probability",
    "priory.plots": "Figures",
    "priory.storage": "Model files",
    "priory.workflows": "What the commands do",
    "priory.service.client": "The client of the service",
    "priory.tables.exact": "Exact sums by group",
    "priory.errors": "Errors and warnings",
    "priory.bayes.course": "The exercises of the course",
}


def list_public_names(module_name: str) -> list[str]:
    """The public names of a module that its page lists: not modules, nor classes that the page of `priory` lists."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module_name
    ]
    listed = [] if module_name == "priory" else [getattr(priory, name) for name in priory.__all__]
    classes = set(filter(inspect.isclass, listed))
    values = {name: getattr(module, name) for name in names}
    return sorted(name for name, value in values.items() if not inspect.ismodule(value) and value not in classes)


def stage_pages() -> None:
    """Put everything that becomes a page into one folder."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGE, ignore=shutil.ignore_patterns("__pycache__"))
    stage_scripts(STAGE / "static" / "course")
    shutil.copytree(ROOT / "benchmarks" / "results", STAGE / "benchmarks")
    shutil.copy(ROOT / "CHANGELOG.md", STAGE / "changelog.md")
    shutil.copy(ROOT / "CONTRIBUTING.md", STAGE / "contributing.md")
    for page in STAGE.rglob("*.md"):
        text = EMPTY_END_OF_BLOCK.sub(r"\1\n```", page.read_text(encoding="utf-8"))
        text = PICTURE.sub(lambda found: THEMED_PICTURE.format(alt=found[1], path=found[2]), text)
        if page.relative_to(STAGE).as_posix() in {f"course/{one.name}" for one in COURSE_PAGES}:
            text = link_own_slides(text, page.stem)
        page.write_text(rewrite_links(link_slides(text), page), encoding="utf-8")
    write_index(STAGE / "benchmarks", "Benchmarks", "The tables that `make benchmark` writes.")
    write_api_pages(STAGE / "api")


def stage_scripts(folder: Path) -> None:
    """The scripts of the course, and the exercises as data for them."""
    folder.mkdir()
    for path in (*SCRIPTS.glob("figure*"), SCRIPTS / "exercises.js", SCRIPTS / "course.js"):
        shutil.copy(path, folder)
    exercises = {
        one.name: {
            "answer": one.answer,
            "hint": one.hint,
            "mistakes": [(mistake.answer, mistake.explanation) for mistake in one.mistakes],
        }
        for one in list_exercises()
    }
    (folder / "exercises-data.js").write_text(f"export default {json.dumps(exercises)};\n", encoding="utf-8")


def rewrite_links(text: str, page: Path) -> str:
    """The links of a page as they are in the staged folder."""
    depth = len(page.relative_to(STAGE).parents) - 1
    up = "../" * depth
    text = text.replace(f"](../{up}benchmarks/results/", f"]({up}benchmarks/")
    if page.name in ("changelog.md", "contributing.md"):
        text = text.replace("](docs/", "](").replace("](benchmarks/results/", "](benchmarks/")
        text = text.replace("](CHANGELOG.md)", "](changelog.md)")
    return text.replace("(../README.md)", f"({up}index.md)")


def link_slides(text: str) -> str:
    """A page with links to the slides of all pages in the place that is marked for them."""
    titles = {page.stem: page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in COURSE_PAGES}
    links = "\n".join(f'<li><a href="{name}-slides.html">{title}</a></li>' for name, title in titles.items())
    return text.replace("<!-- slides -->", f"<ul>\n{links}\n</ul>")


def link_own_slides(text: str, name: str) -> str:
    """A page with a link to its slides below the title."""
    title, rest = text.split("\n", 1)
    return f'{title}\n\n<p class="slides-link"><a href="{name}-slides.html">Slides of this page</a></p>\n{rest}'


def write_index(folder: Path, title: str, text: str) -> None:
    """A page with links to all pages of a folder."""
    names = sorted(page.stem for page in folder.glob("*.md"))
    lines = [f"# {title}", "", text, "", "```{toctree}", ":maxdepth: 1", "", *names, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def write_api_pages(folder: Path) -> None:
    """A page for each public module, with a table of its public names; Sphinx writes the page of each name."""
    folder.mkdir()
    for module, title in PUBLIC_MODULES.items():
        names = [f"   {name}" for name in list_public_names(module)]
        head = [f"{title}", "=" * len(title), "", f".. currentmodule:: {module}", ""]
        table = [".. autosummary::", "   :toctree: generated", "   :nosignatures:", "", *names, ""]
        (folder / f"{module}.rst").write_text("\n".join([*head, *table]), encoding="utf-8")
    pages = [f"   {module}" for module in PUBLIC_MODULES]
    lines = ["API reference", "=============", "", ".. toctree::", "   :maxdepth: 1", "", *pages, ""]
    (folder / "index.rst").write_text("\n".join(lines), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="1", help="how many processes read pages")
    given = parser.parse_args()
    stage_pages()
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", given.jobs]
    failed = subprocess.call([*command, str(STAGE), str(SITE)])
    from course_slides import write_slides  # needs Beautiful Soup, which comes with the theme

    write_slides(SITE)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
