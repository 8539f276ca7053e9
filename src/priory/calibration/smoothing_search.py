"""The smoothing with the smallest leave-one-out log loss.

It is chosen once, from rows, in ``fit``, and is then declared like any other parameter. Smoothing chosen by evidence,
in contrast, is a function of the record and changes with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from priory.core.typing import Array

SMOOTHING_STRENGTHS = 4.0 ** np.arange(-6, 4)


def choose_smoothing(predict_left_out: Callable[[float], Array], group: Array) -> float:
    """The smoothing of the smallest log loss; ``predict_left_out(alpha)`` is log p(c | row) of rows left out.

    >>> choose_smoothing(lambda a: -np.abs(np.log([[a, 4.0]])), np.array([0]))
    1.0
    """
    loss = [-predict_left_out(float(a))[np.arange(len(group)), group].mean() for a in SMOOTHING_STRENGTHS]
    return float(SMOOTHING_STRENGTHS[int(np.argmin(loss))])
