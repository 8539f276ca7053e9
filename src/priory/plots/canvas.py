"""Create figures without pyplot (no global state, window or display), and render them as inline SVG."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from priory.errors import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SHORTHAND = re.compile(r"(.*?)([\d.]+px) (.*)")  # weight, size, family
INK_COLOUR, BLUE, RED = "#333333", "#2f6db5", "#c0392b"
# Okabe and Ito's colour-blind safe palette, without its yellow
CLASS_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def create_axes(x_label: str, y_label: str, title: str = "") -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes."""
    figure = create_figure(6, 4)
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=CLASS_COLOURS)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_title(title, loc="left", fontsize=10)
    return figure, axes


def create_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    module = import_extra("matplotlib.figure", "figures need matplotlib", "'priory[plots]'")
    figure = module.Figure(figsize=(width, height), layout="constrained")
    figure._repr_png_ = partial(_render_png, figure)  # notebooks show it without pyplot
    return figure


def _render_png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def render_inline_svg(draw: Callable[[], Figure], title: str) -> str:
    """Render a figure as SVG for an HTML page, in the text colour of the page; the bytes are reproducible.

    The SVG has attributes instead of styles, as a strict content security policy requires.
    """
    create_figure(1, 1)  # raises if matplotlib is not installed
    import matplotlib

    with _rendering, matplotlib.rc_context(_SVG_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # the browser may have the glyph
        file = io.StringIO()
        draw().savefig(file, format="svg", transparent=True, metadata=dict.fromkeys(_METADATA))
    picture = file.getvalue()
    picture = picture[picture.index("<svg") :].replace(INK_COLOUR, "currentColor")  # without the XML prologue
    picture = replace_styles(name_figure_ids(picture, re.sub(r"\W+", "-", title)))
    return picture.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def replace_styles(svg: str) -> str:
    """Replace the styles of an SVG by attributes, for pages with a strict content security policy.

    >>> replace_styles('<g style="fill: #fff; font: 10px serif; stroke-width: 2"/>')
    '<g fill="#fff" font-size="10px" font-family="serif" stroke-width="2"/>'
    """
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' style="([^"]*)"', lambda found: "".join(_format_attributes(found[1])), svg)
    return svg.replace("<svg", '<svg stroke-linejoin="round"', 1) if svg.startswith("<svg") else svg


def _format_attributes(style: str) -> Iterator[str]:
    for declaration in filter(str.strip, style.split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        shorthand = FONT_SHORTHAND.fullmatch(value) if name == "font" else None  # written by matplotlib before 3.10
        if shorthand:
            weight = [f' font-weight="{shorthand[1].strip()}"'] if shorthand[1].strip() else []
            yield from (*weight, f' font-size="{shorthand[2]}"', f' font-family="{shorthand[3]}"')
        else:
            yield f' {name}="{value}"'


def name_figure_ids(svg: str, name: str) -> str:
    """Prefix all ids of an SVG with the name of the figure, so that ids are unique in a page with several figures."""
    return re.sub(r'(\bid="|href="#|url\(#)', lambda found: f"{found[1]}{name}-", svg)


_rendering = threading.Lock()  # matplotlib's rcParams are global
_METADATA = ("Creator", "Date", "Format", "Type")  # left out: they would differ between runs
_SVG_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "priory"} | dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK_COLOUR
)
