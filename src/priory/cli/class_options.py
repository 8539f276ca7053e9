"""Options that say how much classes count: their prior probabilities, or weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from priory.cli.sections import define_option, make_section

if TYPE_CHECKING:
    from priory.models.class_prior import ClassWeight
    from priory.workflows.class_weights import DeclaredPrior

add_class_options = make_section(
    "Classes",
    define_option(
        "--prior",
        metavar="PRIOR",
        help="How probable the classes are where the model will be used: 'uniform', CLASS=P,... or a file with classes "
        "and probabilities. By default as in the training rows.",
    ),
    define_option(
        "--class-weight",
        metavar="WEIGHT",
        help="How much the rows of a class count: 'balanced', or CLASS=W,... A weight multiplies the prior.",
    ),
)


def pop_class_options(given: dict[str, Any]) -> tuple[DeclaredPrior | None, ClassWeight | None]:
    """The options of `add_class_options`, taken out of what a command was given."""
    prior, weight = given.pop("prior"), given.pop("class_weight")
    if prior is not None and weight is not None:
        raise click.UsageError("--prior and --class-weight exclude each other; use one of them")
    if weight is not None and weight != "balanced":
        weight = _parse_numbers(weight, "--class-weight")
    if prior is not None and prior != "uniform":
        from priory.workflows.class_files import read_class_prior

        prior = _parse_numbers(prior, "--prior") if "=" in prior else read_class_prior(prior)
    return prior, weight


def _parse_numbers(text: str, option: str) -> dict[str, float]:
    numbers = {}
    for pair in text.split(","):
        name, equals, number = pair.rpartition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise click.BadParameter(f"{pair!r} is not CLASS=NUMBER.", param_hint=option)
    return numbers
