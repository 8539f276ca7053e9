"""The figure of a decision: what each answer is expected to cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from priory.errors import DataError
from priory.plots.canvas import CLASS_COLOURS, RED, create_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def expected_costs(cost: ArrayLike, classes: Sequence[Hashable], reject: float | None = None) -> Figure:
    """Plot the expected cost of each answer against the probability of the second class, and the threshold.

    ``cost[i][j]`` is the cost of answering class j when class i is true, and ``reject`` that of asking a person, as
    for ``decide``.
    """
    costs = np.asarray(cost, dtype=float)
    if costs.shape != (2, 2) or len(classes) != 2:
        raise DataError(f"{len(classes)} classes and costs of shape {costs.shape}: this figure is for two classes.")
    p = np.linspace(0, 1, 201)
    lines = np.column_stack([1 - p, p]) @ costs  # (points, answers)
    figure, axes = create_axes(f"P({classes[1]} | x)", "expected cost of the answer")
    for k, name in enumerate(classes):
        axes.plot(p, lines[:, k], color=CLASS_COLOURS[k], label=f"answer {name}")
    if reject is not None:
        axes.axhline(reject, color=CLASS_COLOURS[2], linestyle="--", label="ask a person")
    false_alarm, missed = costs[0, 1] - costs[0, 0], costs[1, 0] - costs[1, 1]
    if false_alarm > 0 and missed > 0:
        threshold = false_alarm / (false_alarm + missed)
        axes.axvline(threshold, color=RED, linestyle=":", label=f"threshold {threshold:.3g}")
    axes.set(xlim=(0, 1), ylim=(0, None))
    axes.legend(frameon=False)
    return figure
