"""The private parts of scikit-learn that priory needs, in one place, each with the public function that is missing.

Everything else imports from scikit-learn's public modules. When scikit-learn moves one of these names, this is the only
file to change.
"""

from collections.abc import Mapping
from typing import Any

from numpy import ndarray as Array

# No public function says which array library and device an array belongs to, or moves it to NumPy, and follows
# `sklearn.set_config(array_api_dispatch=...)` while doing so.
from sklearn.utils._array_api import _convert_to_numpy as convert_array_to_numpy
from sklearn.utils._array_api import device, get_namespace

# No public function takes rows out of any kind of table (array, DataFrame, sparse matrix, list); `resample` copies all.
from sklearn.utils._indexing import _safe_indexing

# No public base class gives a meta-estimator with a list of named estimators its nested `get_params` and `set_params`.
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition

__all__ = ["BaseComposition", "convert_array_to_numpy", "device", "get_namespace", "take_table_rows"]


def take_table_rows(X: Any, positions: Array) -> Any:
    """Some rows of a table of any kind, or of a list of texts."""
    if isinstance(X, Mapping):
        return {name: [column[row] for row in positions] for name, column in X.items()}
    if hasattr(X, "take") and hasattr(X, "schema"):  # a pyarrow table, which scikit-learn before 1.8 cannot index
        return X.take(positions)
    return _safe_indexing(X, positions)
