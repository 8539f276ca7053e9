"""Find the registered classes that a model file may name.

A file contains names, never modules or code. A name is looked up among the classes that are registered so far (see
`priory.core.registration`), by priory or by modules that the user has imported. If it is not among them, priory imports
its own modules from the list below; a file cannot cause any other import.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import priory
from priory.core.registration import (
    BY_NAME,
    EstimatorRegistration,
    Registration,
    find_registered_name,
    find_registration,
)

# Importing these modules registers every class that a file can contain; the cheapest come first.
REGISTERING_MODULES = (
    "priory.families",
    "priory.bag_of_words.hashed_counts",
    "priory.models.model_statistics",
    "priory.calibration.corrections",
    "priory.regression.cross_products",
    "priory.regression.linear_posterior",
    "priory.regression.logistic_posterior",
    "priory.regression.mcmc",
    "priory.naive_bayes",
)
NOTES_ATTRIBUTE = "notes"  # the attribute of a loaded model that holds the notes of its file


def find_class(name: str) -> Registration | None:
    """Return the registered class of this name, importing modules of priory as needed; None if there is none."""
    if find_registered_name(name) is None and name[:1].isupper() and name in priory.__all__:
        getattr(priory, name)  # imports only the module of this estimator
    for module in REGISTERING_MODULES:
        if find_registered_name(name) is not None:
            break
        import_module(module)
    return find_registered_name(name)


def find_estimator(cls: type) -> EstimatorRegistration | None:
    """Return the registration of an estimator class, or None for any other class."""
    found = find_registration(cls)
    return found if isinstance(found, EstimatorRegistration) else None


def find_record(cls: type) -> Registration | None:
    """Return the registration of a record or family class, or None for any other class."""
    found = find_registration(cls)
    return None if isinstance(found, EstimatorRegistration) else found


def list_estimators() -> list[str]:
    """Return the names of all models that can be saved."""
    # public estimators are imported lazily
    for name in priory.__all__:
        if name[:1].isupper():
            getattr(priory, name)
    import_module("priory.naive_bayes")
    return sorted(name for name, found in BY_NAME.items() if isinstance(found, EstimatorRegistration))


def collect_learned_attributes(model: Any, parameters: dict[str, object]) -> dict[str, object]:
    """The attributes of an estimator besides its parameters and notes, as it would be pickled."""
    return {
        name: value
        for name, value in model.__getstate__().items()
        if name not in parameters and name != NOTES_ATTRIBUTE
    }
