"""Empty figures to draw on, created without pyplot: no global state, no window, and no display needed."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from priory.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK_COLOUR, BLUE, RED = "#333333", "#2f6db5", "#c0392b"
# Okabe and Ito's palette, which colour-blind people can tell apart, without its yellow
CLASS_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def create_axes(x_label: str, y_label: str, title: str = "") -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes."""
    figure = create_figure(6, 4)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_title(title, loc="left", fontsize=10)
    return figure, axes


def create_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "figures need matplotlib: pip install 'priory[plots]'.", name=error.name
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def render_inline_svg(draw: Callable[[], Figure], title: str) -> str:
    """Return a figure as SVG for an HTML page, with the text colour of the page; the same bytes every time.

    It has attributes instead of styles, so that a page with a strict content security policy can show it.
    """
    create_figure(1, 1)  # raises if matplotlib is not installed
    import matplotlib

    with _rendering, matplotlib.rc_context(_SVG_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # the reader's fonts may have it
        file = io.StringIO()
        draw().savefig(file, format="svg", transparent=True, metadata=dict.fromkeys(_METADATA))
    picture = file.getvalue()
    picture = _replace_styles(picture[picture.index("<svg") :]).replace(INK_COLOUR, "currentColor")
    return picture.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _replace_styles(picture: str) -> str:
    """An SVG of matplotlib with presentation attributes for styles, and with no id that another figure may have.

    >>> _replace_styles('<path id="patch_1" style="fill: none; stroke-width: 0.8"/>')
    '<path fill="none" stroke-width="0.8"/>'
    """
    picture = re.sub(r"<style[^>]*>.*?</style>", "", picture, flags=re.DOTALL)
    picture = re.sub(r' id="[A-Za-z][A-Za-z0-9.]*_\d+"', "", picture)
    picture = re.sub(r' style="([^"]*)"', lambda found: _convert_style(found[1]), picture)
    return picture.replace("<svg", '<svg stroke-linejoin="round" stroke-linecap="butt"', 1)


def _convert_style(style: str) -> str:
    pairs = (declaration.partition(":") for declaration in style.split(";"))
    return "".join(
        f' {name.strip()}="{value.strip()}"' for name, _, value in pairs if name.strip() not in ("", "font-family")
    )


_rendering = threading.Lock()  # the settings of matplotlib are global
_METADATA = ("Creator", "Date", "Format", "Type")
_SVG_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "priory"} | dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK_COLOUR
)
