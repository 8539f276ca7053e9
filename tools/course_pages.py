"""The pages of the course as blocks that can be run: text, examples with their results, and pictures."""

import ast
import contextlib
import doctest
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "docs" / "course"
PAGES = sorted(page for page in COURSE.glob("*.md") if page.stem not in ("index", "slides"))
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```\n?"
    r"|<picture>\n.*?src=\"\.\./figures/course/(?P<picture>[\w-]+)\.svg\">\n</picture>\n?"
    r"|(?P<exercise><div class=\"exercise\"[^>]*>\n.*?</div>)\n?"
    r"|(?P<solution><details>\n.*?</details>)\n?",
    re.DOTALL,
)
INK = "#333333"
FIGURE_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "priory", "axes.unicode_minus": True} | dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
)
DARK = {  # the colours of priory.plots on a dark page
    INK: "#d9dee5", "#000000": "#e8edf3", "#262626": "#d9dee5",
    "#2f6db5": "#6ea8e8", "#c0392b": "#f0776a", "#0072b2": "#4fa8dd", "#d55e00": "#f08a3c", "#009e73": "#3cc79d",
    "#cc79a7": "#e29cc4", "#e69f00": "#f2bb4a",
    "#cccccc": "#59616b", "#d9d9d9": "#3f4751", "#999999": "#8b949e",
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A part of a page: text, code, a picture (its name), an exercise, or its solution."""

    kind: str
    text: str


@dataclass
class Cell:
    """Statements that were run, and what they showed; a cell ends where something is shown."""

    source: str
    printed: str = ""
    value: str = ""
    error: str = ""
    picture: str = ""


@dataclass
class RunPage:
    """A page after its examples were run: its parts in order, and its figures as light SVG."""

    parts: list[Block | Cell] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)


def split_page(text: str) -> Iterator[Block]:
    """The blocks of a page, in order.

    >>> [block.kind for block in split_page("One.\\n```python\\n>>> 1\\n1\\n```\\nTwo.")]
    ['text', 'code', 'text']
    """
    at = 0
    for found in BLOCK.finditer(text):
        yield Block("text", text[at : found.start()])
        yield Block(found.lastgroup, found[found.lastgroup])
        at = found.end()
    yield Block("text", text[at:])


def run_page(page: Path) -> RunPage:
    """Run the examples of a page; a picture is the `figure` that the examples before it have drawn."""
    done, names = RunPage(), {"__name__": "__main__"}
    with matplotlib.rc_context(FIGURE_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in split_page(page.read_text(encoding="utf-8")):
            if block.kind == "code":
                done.parts += run_examples(block.text, names)
            elif block.kind == "picture":
                svg = render_figure(names["figure"])
                done.figures[block.text] = svg
                last = next((part for part in reversed(done.parts) if isinstance(part, Cell)), None)
                last.source, last.picture = f"{last.source}\nfigure", svg
            else:
                done.parts.append(block)
    return done


def run_examples(block: str, names: dict) -> Iterator[Cell]:
    """Run a block of examples: a cell for each result, with the statements before it."""
    waiting = []
    examples = doctest.DocTestParser().get_examples(block)
    for number, example in enumerate(examples):
        cell = run_example(example.source, names, may_fail=example.exc_msg is not None)
        waiting.append(example.source.rstrip("\n"))
        if cell.printed or cell.value or cell.error or number == len(examples) - 1:
            cell.source = "\n".join(waiting)
            waiting = []
            yield cell


def run_example(source: str, names: dict, may_fail: bool) -> Cell:
    """Run statements, and keep what they print and the value of the last one."""
    cell, printed = Cell(source), io.StringIO()
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), "<page>", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), names) if last else None
    except Exception as error:
        if not may_fail:
            raise
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        cell.error = f"{module}{kind.__qualname__}: {error}"
        return cell
    cell.printed, cell.value = printed.getvalue(), "" if value is None else repr(value)
    return cell


def render_figure(figure) -> str:
    """A figure as SVG, with the same text every time."""
    file = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    svg = file.getvalue()
    svg = re.sub(r"[ \t]+$", "", svg[svg.index("<svg") :], flags=re.MULTILINE)
    return re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)  # hundredths of a point


def darken(svg: str) -> str:
    """The same figure for a dark page.

    >>> darken('<g style="fill: #333333"/>')
    '<g style="fill: #d9dee5"/>'
    """
    return re.sub("|".join(DARK), lambda found: DARK[found[0]], svg)
