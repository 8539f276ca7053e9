"""Type hints of records as checks of what a model file holds."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from priory.storage.validation import matches_type_hint


@pytest.mark.parametrize(
    "hint",
    [np.ndarray, NDArray[np.float64], SimpleNamespace(__value__=NDArray[np.float64])],
    ids=["class", "NDArray", "alias"],
)
def test_an_array_is_recognised_by_any_name_of_its_type(hint):
    assert matches_type_hint(np.ones(2), hint)
    assert not matches_type_hint([1.0, 1.0], hint)
