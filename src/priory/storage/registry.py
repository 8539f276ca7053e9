"""Which classes a model file may name: those that priory's own modules, or imported modules of the user, registered.

A file holds names, never modules or code. A name is looked up among the classes registered so far (see
`priory.core.registration`); if it is not there, priory imports modules of its own from the list below. Nothing that a
file says decides which module is imported beyond this list.
"""

from __future__ import annotations

from importlib import import_module

import priory
from priory.core.registration import (
    BY_NAME,
    EstimatorRegistration,
    Registration,
    find_registered_name,
    find_registration,
)

# Modules whose import registers everything a file can hold, the cheapest first.
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
NOTES_ATTRIBUTE = "notes"  # the attribute of a model for the notes that its file holds


def find_class(name: str) -> Registration | None:
    """The registered class of this name, its module imported first if it is one of priory's; None if there is none."""
    if find_registered_name(name) is None and name[:1].isupper() and name in priory.__all__:
        getattr(priory, name)  # imports the module of this estimator and no other
    for module in REGISTERING_MODULES:
        if find_registered_name(name) is not None:
            break
        import_module(module)
    return find_registered_name(name)


def find_estimator(cls: type) -> EstimatorRegistration | None:
    """What an estimator declared; None for any other class."""
    found = find_registration(cls)
    return found if isinstance(found, EstimatorRegistration) else None


def find_record(cls: type) -> Registration | None:
    """What a record or a family declared; None for any other class."""
    found = find_registration(cls)
    return None if isinstance(found, EstimatorRegistration) else found


def list_estimators() -> list[str]:
    """The names of all models that can be saved."""
    for name in priory.__all__:
        if name[:1].isupper():
            getattr(priory, name)
    import_module("priory.naive_bayes")
    return sorted(name for name, found in BY_NAME.items() if isinstance(found, EstimatorRegistration))


def collect_learned_attributes(model: object, parameters: dict[str, object]) -> dict[str, object]:
    """The attributes of an estimator besides its parameters and notes."""
    return {name: value for name, value in vars(model).items() if name not in parameters and name != NOTES_ATTRIBUTE}
