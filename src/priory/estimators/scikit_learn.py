"""scikit-learn's base classes, or stand-ins for them in a process that only predicts, such as ``priory predict``.

Importing scikit-learn takes longer than most commands. In a process that avoids it (`priory.core.lazy_imports`) the
classifiers learn, forget, predict and explain in the same way, and it is imported only if something needs it after all.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn, Self

from priory.core.lazy_imports import is_avoided

if TYPE_CHECKING:
    from sklearn.utils import Tags


class PlainEstimator:
    """Stand-in for scikit-learn's ``BaseEstimator``: parameters are the arguments of ``__init__``."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters."""
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        declared = signature(type(self)).parameters
        given = {name: value for name, value in self.get_params().items() if value is not declared[name].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.base import BaseEstimator, ClassifierMixin

        return type("Classifier", (ClassifierMixin, BaseEstimator), {})().__sklearn_tags__()


class PlainMixin:
    """Stand-in for scikit-learn's ``ClassifierMixin``."""


__all__ = ["BaseEstimator", "ClassifierMixin", "raise_not_fitted"]

if TYPE_CHECKING or not is_avoided("sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin
else:
    BaseEstimator, ClassifierMixin = PlainEstimator, PlainMixin


def raise_not_fitted(model: object) -> NoReturn:
    """Raise scikit-learn's error for a model that has learned nothing."""
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet; call fit first.")
