"""Types that the whole package shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

P = ParamSpec("P")  # the parameters of a wrapped function
ReturnT = TypeVar("ReturnT")  # what it returns
ClassT = TypeVar("ClassT", bound=type)  # a class that is decorated

ColumnKind = Literal["number", "label", "text", "empty"]  # how the cells of a column are parsed
Label = str | int | float | bool  # the name of a class
Seed: TypeAlias = "int | np.random.Generator | None"  # accepted by numpy.random.default_rng
RandomState: TypeAlias = "int | np.random.RandomState | None"  # accepted by scikit-learn's check_random_state


# The rows of a table as estimators accept them: an array, nested lists, a data frame, or a sparse matrix.
MatrixLike: TypeAlias = "ArrayLike | sparray | spmatrix"


class FittedClassifier(Protocol):
    """A fitted classifier with probabilities: scikit-learn's or any other."""

    @property
    def classes_(self) -> Array: ...

    def predict_proba(self, X: Any, /) -> Array: ...


class Classifier(FittedClassifier, Protocol):
    """A classifier with probabilities that can be fitted."""

    def fit(self, X: Any, y: Any, /) -> Self: ...
