"""Choose the smoothing by the leave-one-out log loss.

``fit`` chooses it once, and then it is fixed like a declared parameter. Smoothing chosen by evidence, in contrast, is a
function of the statistics and changes with them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from priory.core.typing import Array

SMOOTHING_STRENGTHS = 4.0 ** np.arange(-6, 4)


def choose_smoothing(predict_left_out: Callable[[float], Array], group: Array) -> float:
    """Return the smoothing with the smallest log loss; ``predict_left_out(alpha)`` is (rows, classes) log p(c | x).

    >>> choose_smoothing(lambda a: -np.abs(np.log([[a, 4.0]])), np.array([0]))
    1.0
    """
    loss = [-predict_left_out(float(a))[np.arange(len(group)), group].mean() for a in SMOOTHING_STRENGTHS]
    return float(SMOOTHING_STRENGTHS[int(np.argmin(loss))])
