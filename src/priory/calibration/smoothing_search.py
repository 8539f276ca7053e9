"""The strength of a prior by leaving rows out: the one under which each is most probable of its own class.

A choice made once, from rows, in ``fit``; from then on it is declared, like any other parameter. That is the price of
judging by prediction: the evidence, which the record alone decides, can be asked again after every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError

SMOOTHING_STRENGTHS = 4.0 ** np.arange(-6, 4)


def sample_row_indices(rows: int, sample_weight: Any, max_rows: int) -> Array:
    """At most so many rows, evenly spaced.

    >>> sample_row_indices(10, None, 4).tolist()
    [0, 3, 6, 9]
    """
    if sample_weight is not None:
        raise DataError("alpha='loo' leaves out rows of weight one; leave sample_weight out, or give a number.")
    return np.unique(np.linspace(0, rows - 1, min(rows, max_rows)).astype(int))


def choose_smoothing(predict_left_out: Callable[[float], Array], group: Array) -> float:
    """The strength of the smallest log loss; ``honest`` has log p(c | row) of rows left out, ``group`` their classes.

    >>> choose_smoothing(lambda a: -np.abs(np.log([[a, 4.0]])), np.array([0]))
    1.0
    """
    loss = [-predict_left_out(float(a))[np.arange(len(group)), group].mean() for a in SMOOTHING_STRENGTHS]
    return float(SMOOTHING_STRENGTHS[int(np.argmin(loss))])
