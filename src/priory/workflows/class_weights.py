"""How much classes count in a model that was trained on files: prior probabilities, or weights."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Literal

from priory.errors import DataError
from priory.evaluation.costs import find_class_index
from priory.models.class_prior import ClassWeight

if TYPE_CHECKING:
    from priory.workflows.model_files import TableOrTextClassifier

DeclaredPrior = Literal["uniform"] | Mapping[str, float]


def declare_class_prior(
    model: TableOrTextClassifier, prior: DeclaredPrior | None, class_weight: ClassWeight | None
) -> None:
    """Give a model that has learned its rows the declared prior or weights of classes, which must be its own."""
    if prior is None and class_weight is None:
        return
    classes = model.classes_.tolist()
    for given in (prior, class_weight):
        for label in given if isinstance(given, Mapping) else ():
            find_class_index(str(label), classes)
    if class_weight is not None:
        model.set_params(class_weight=class_weight)
    elif isinstance(prior, Mapping):
        total = sum(prior.values())
        if absent := [label for label in classes if label not in prior]:
            raise DataError(f"the prior has no probability for class {absent[0]!r}; give one")
        if not (0 < total < inf and min(prior.values()) >= 0):
            raise DataError("a probability of the prior is negative, or all are 0; give numbers that are 0 or more")
        model.set_params(class_prior={label: prior[label] / total for label in classes})
        model._set_statistics(model.statistics_.declare_classes(model.classes_))
    else:
        model.set_params(class_prior=prior)
    model.class_prior_  # noqa: B018  # weights that are impossible are reported here
