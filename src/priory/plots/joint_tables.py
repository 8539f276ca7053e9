"""The figure of a joint table: probabilities as areas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from priory.errors import DataError
from priory.plots.canvas import CLASS_COLOURS, create_axes
from priory.probability import JointTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_NAMED_AREA = 0.01


def mosaic(table: JointTable) -> Figure:
    """Plot a joint table of two variables as a unit square, in which every area is a probability.

    The widths are P(first); the heights within a column are P(second | first).
    """
    if len(table.names) != 2:
        raise DataError(f"the table has {len(table.names)} variables; marginalise it to two for this figure.")
    first, second = table.names
    figure, axes = create_axes(f"P({first})", f"P({second} | {first})")
    left = 0.0
    middles: list[float] = []
    for value in table.values(first):
        width, bottom = table.probability(**{first: value}), 0.0
        for k, other in enumerate(table.values(second)):
            p = table.probability(**{first: value, second: other})
            height = p / width if width else 0.0
            colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
            label = f"{second} = {other}" if not middles else None
            axes.bar(left, height, width, bottom, align="edge", color=colour, alpha=0.75, label=label, linewidth=0)
            if p >= MIN_NAMED_AREA:
                centre = (left + width / 2, bottom + height / 2)
                axes.annotate(f"{p:.3g}", centre, ha="center", va="center", fontsize=9)
            bottom += height
        axes.axvline(left, color="white", linewidth=2)
        middles.append(left + width / 2)
        left += width
    axes.set_xticks(middles, [str(value) for value in table.values(first)])
    axes.set(xlim=(0, 1), ylim=(0, 1))
    figure.legend(frameon=False, loc="outside right upper", fontsize=9)
    return figure
