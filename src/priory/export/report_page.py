"""The page of a report: its template, and small figures without a plotting library."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array

from priory.errors import import_extra
from priory.evaluation.curves import ReliabilityBin
from priory.model.ledger_output import find_widest

if TYPE_CHECKING:
    from markupsafe import Markup


WIDTH, HEIGHT = 160, 44  # of a histogram, in pixels
SQUARE = 72  # width and height of a reliability diagram
MIN_DOT, MAX_DOT = 1.5, 6.5  # radius
N_COLOURS = 7  # classes beyond these share the last colour


def draw_bar(share: float, kind: str) -> str:
    """Draw a bar over a share of the width; ``kind`` is "for" or "against". It is hidden from screen readers."""
    width = max(100 * min(share, 1.0), 0.4) if share > 0 else 0.0  # small shares stay visible
    return (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{kind}" width="{width:.1f}" height="8" rx="1"/></svg>'
    )


def draw_stacked_bars(counts: Array, title: str) -> str:
    """Draw stacked bars; ``counts`` is (bars, classes)."""
    heights = counts / max(float(counts.sum(axis=1).max(initial=0.0)), 1e-300) * HEIGHT  # (bars, classes)
    step = WIDTH / max(len(counts), 1)
    shapes = []
    for place, stack in enumerate(heights):
        top = float(HEIGHT)  # SVG's y axis points down
        for c, height in enumerate(stack.tolist()):
            if height > 0:
                top -= height
                shapes.append(
                    f'<rect class="class-{min(c, N_COLOURS - 1)}" x="{place * step:.1f}" y="{top:.1f}" '
                    f'width="{max(step - 1, 0.5):.1f}" height="{height:.1f}"/>'
                )
    return _make_svg(WIDTH, HEIGHT, title, "".join(shapes))


def draw_reliability(bins: Sequence[ReliabilityBin], title: str) -> str:
    """Draw a reliability diagram of one class; the area of a dot grows with its number of rows."""
    total = sum(one.rows for one in bins) or 1.0
    dots = "".join(
        f'<circle class="class-0" cx="{SQUARE * one.certainty:.1f}" cy="{SQUARE * (1 - one.accuracy.value):.1f}" '
        f'r="{MIN_DOT + (MAX_DOT - MIN_DOT) * float(np.sqrt(one.rows / total)):.1f}"/>'
        for one in bins
    )
    axes = f'<path class="axis" d="M0 0V{SQUARE}H{SQUARE}"/><path class="diagonal" d="M0 {SQUARE}L{SQUARE} 0"/>'
    ends = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
        for x, y, anchor, text in (
            (-4, 8, "end", "1"),
            (-4, SQUARE, "end", "0"),
            (0, SQUARE + 12, "start", "0"),
            (SQUARE, SQUARE + 12, "end", "1"),
            (SQUARE / 2, SQUARE + 12, "middle", "probability"),
        )
    )
    return _make_svg(SQUARE, SQUARE, title, axes + dots + ends, 2 * MAX_DOT)


def _make_svg(width: int, height: int, title: str, shapes: str, margin: float = 0.0) -> str:
    """Wrap shapes in an SVG of this size, with a margin for dots at the edges."""
    full_width, full_height = f"{width + 2 * margin:g}", f"{height + 2 * margin:g}"
    frame = f"{0 - margin:g} {0 - margin:g} {full_width} {full_height}"
    return (
        f'<svg class="small" width="{full_width}" height="{full_height}" viewBox="{frame}" role="img" '
        f'aria-label="{escape(title)}">{shapes}</svg>'
    )


def render_page(page: dict[str, object]) -> str:
    """Render the page; its content security policy allows only its own style sheet, by hash."""
    style = render_template("report.css", {})
    # the policy of the page names the style sheet by this hash, so injected styles are not applied
    digest = b64encode(sha256(style.encode()).digest()).decode()
    tools = {"draw_weight": _draw_weight, "find_widest": find_widest, "contents": list_contents(page)}
    return render_template("report.html", page | tools | {"style": mark_safe(style), "style_hash": digest})


def render_template(name: str, values: Mapping[str, object], escape_text: Callable[[object], str] | None = None) -> str:
    """Render a template: HTML, in which everything is escaped, or text whose filter ``shown`` is ``escape_text``."""
    jinja2 = _import_jinja2()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("priory.export", "templates"),
        autoescape=escape_text is None,
        undefined=jinja2.StrictUndefined,  # a misspelt name in the template is an error
        trim_blocks=name.endswith(".txt"),
    )
    environment.filters["shown"] = escape_text or jinja2.utils.markupsafe.escape
    rendered: str = environment.get_template(name).render(values)
    return rendered


def list_contents(page: dict[str, object]) -> list[tuple[str, str, bool]]:
    """Return the id and title of each section, and whether the page has it."""
    figures, scored = page["figures"], bool(page["scored"])
    assert isinstance(figures, dict)
    return [
        ("calibration", "Calibration", scored),
        ("answers", "Correct and wrong answers", scored),
        ("curve", "Learning curve", "curve" in figures),
        ("labels", "The labels", bool(page["labels"])),
        ("evidence", "The strongest evidence", bool(page["strongest"])),
        ("mistakes", "The worst mistakes", bool(page["mistakes"])),
        ("columns", "The columns", bool(page["columns"])),
        ("learned", "What was learned", bool(page["tables"])),
        ("leakage", "Leakage", bool(page["findings"])),
        ("privacy", "What the answers reveal", bool(page["privacy"])),
        ("reproduce", "How to reproduce this", True),
    ]


def _draw_weight(weight: float, widest: float) -> Markup:
    """Draw the bar of a line of evidence."""
    return mark_safe(draw_bar(abs(weight) / widest, "for" if weight > 0 else "against"))


def mark_safe(html: str) -> Markup:
    """Mark HTML as already escaped."""
    safe: Markup = _import_jinja2().utils.markupsafe.Markup(html)
    return safe


_import_jinja2 = partial(import_extra, "jinja2", "a report needs jinja2", "'priory[report]'")
