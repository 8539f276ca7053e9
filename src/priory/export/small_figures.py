"""Small figures for tables: SVG with classes and attributes, no styles, so that a strict page can show them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from priory.core.typing import Array
from priory.evaluation.reliability import ReliabilityBin

WIDTH, HEIGHT = 160, 44
SQUARE = 72
MIN_DOT, MAX_DOT = 1.5, 6.5  # the radius of a dot
N_COLOURS = 7  # classes beyond these share the last colour


def draw_bar(share: float, kind: str) -> str:
    """A bar of a share of the width; ``kind`` is "for" or "against". The number stands beside it, so it has no name."""
    width = max(100 * min(share, 1.0), 0.4) if share > 0 else 0.0  # nothing is not a little
    return (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{kind}" width="{width:.1f}" height="8" rx="1"/></svg>'
    )


def draw_stacked_bars(counts: Array, title: str) -> str:
    """Bars side by side, each stacked by class: ``counts`` is (bars, classes)."""
    heights = counts / max(float(counts.sum(axis=1).max(initial=0.0)), 1e-300) * HEIGHT
    step = WIDTH / max(len(counts), 1)
    shapes = []
    for place, stack in enumerate(heights):
        top = float(HEIGHT)
        for c, height in enumerate(stack.tolist()):
            if height > 0:
                top -= height
                shapes.append(
                    f'<rect class="class-{min(c, N_COLOURS - 1)}" x="{place * step:.1f}" y="{top:.1f}" '
                    f'width="{max(step - 1, 0.5):.1f}" height="{height:.1f}"/>'
                )
    return _make_svg(WIDTH, HEIGHT, title, "".join(shapes))


def draw_reliability(bins: Sequence[ReliabilityBin], title: str) -> str:
    """The share of a class among rows of similar probability, against that probability; dots as large as many rows."""
    total = sum(one.rows for one in bins) or 1.0
    dots = "".join(
        f'<circle class="class-0" cx="{SQUARE * one.certainty:.1f}" cy="{SQUARE * (1 - one.accuracy.value):.1f}" '
        f'r="{MIN_DOT + (MAX_DOT - MIN_DOT) * float(np.sqrt(one.rows / total)):.1f}"/>'
        for one in bins
    )
    return _make_svg(SQUARE, SQUARE, title, f'<path class="diagonal" d="M0 {SQUARE}L{SQUARE} 0"/>{dots}', MAX_DOT)


def _make_svg(width: int, height: int, title: str, shapes: str, margin: float = 0.0) -> str:
    """Shapes in a frame of this size, and as much margin as dots at its edges need."""
    full_width, full_height = f"{width + 2 * margin:g}", f"{height + 2 * margin:g}"
    frame = f"{0 - margin:g} {0 - margin:g} {full_width} {full_height}"
    return (
        f'<svg class="small" width="{full_width}" height="{full_height}" viewBox="{frame}" role="img" '
        f'aria-label="{escape(title)}">{shapes}</svg>'
    )
