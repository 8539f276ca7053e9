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

STRENGTHS = 4.0 ** np.arange(-6, 4)


def sample(rows: int, sample_weight: Any, most: int) -> Array:
    """At most so many rows, evenly spaced.

    >>> sample(10, None, 4).tolist()
    [0, 3, 6, 9]
    """
    if sample_weight is not None:
        raise DataError("alpha='loo' leaves out rows of weight one; leave sample_weight out, or give a number.")
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(int))


def by_leaving_out(honest: Callable[[float], Array], group: Array) -> float:
    """The strength of the smallest log loss; ``honest`` has log p(c | row) of rows left out, ``group`` their classes.

    >>> by_leaving_out(lambda a: -np.abs(np.log([[a, 4.0]])), np.array([0]))
    1.0
    """
    loss = [-honest(float(a))[np.arange(len(group)), group].mean() for a in STRENGTHS]
    return float(STRENGTHS[int(np.argmin(loss))])
