"""Small SVG figures for tables, without styles, as a strict content security policy requires."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from priory.core.typing import Array
from priory.evaluation.reliability import ReliabilityBin

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
    return _make_svg(SQUARE, SQUARE, title, f'<path class="diagonal" d="M0 {SQUARE}L{SQUARE} 0"/>{dots}', MAX_DOT)


def _make_svg(width: int, height: int, title: str, shapes: str, margin: float = 0.0) -> str:
    """Wrap shapes in an SVG of this size, with a margin for dots at the edges."""
    full_width, full_height = f"{width + 2 * margin:g}", f"{height + 2 * margin:g}"
    frame = f"{0 - margin:g} {0 - margin:g} {full_width} {full_height}"
    return (
        f'<svg class="small" width="{full_width}" height="{full_height}" viewBox="{frame}" role="img" '
        f'aria-label="{escape(title)}">{shapes}</svg>'
    )
