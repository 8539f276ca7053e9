"""Class priors and class weights; a weight multiplies the share of its class in the training rows.

Weighting all rows of a class scales its statistics, which changes only the class prior, apart from smoothing. So
weights are a declared prior: the statistics still count every row once, and rows can be learned and forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from priory.errors import DataError
from priory.evaluation.costs import find_class_index

if TYPE_CHECKING:
    from priory.workflows.model_files import TableOrTextClassifier

DeclaredPrior = Literal["uniform"] | Mapping[str, float]
ClassWeight = Literal["balanced"] | Mapping[str, float]


def declare_class_prior(
    model: TableOrTextClassifier, prior: DeclaredPrior | None, class_weight: ClassWeight | None
) -> None:
    """Set the class prior of a fitted model: the declared one, or the class shares times the weights."""
    if prior is None and class_weight is None:
        return
    if prior == "uniform" or class_weight == "balanced":
        model.set_params(class_prior="uniform")
        return
    classes = model.classes_.tolist()
    shares = np.full(len(classes), np.nan) if prior is not None else model.class_count_.astype(float)
    given = prior if prior is not None else class_weight
    assert isinstance(given, Mapping)
    for label, number in given.items():
        if not 0 <= number < np.inf:
            raise DataError(f"class {label!r} has the weight {number:g}; give a number that is 0 or more")
        index = find_class_index(label, classes)
        shares[index] = number if prior is not None else number * shares[index]
    if np.isnan(shares).any():
        raise DataError(f"the prior has no probability for class {classes[int(np.isnan(shares).argmax())]!r}; give one")
    if not shares.sum() > 0:
        raise DataError("every class has the weight 0; give at least one class a weight above 0")
    model.set_params(class_prior=dict(zip(classes, (shares / shares.sum()).tolist(), strict=True)))
    model._set_statistics(model.statistics_.declare_classes(model.classes_))
