"""Options for classes, decisions and engines: priors, weights, costs, thresholds, and the cluster that counts."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from priory.cli.options import OptionSection, define_option
from priory.errors import DataError

if TYPE_CHECKING:
    from priory.evaluation.decisions import Costs
    from priory.workflows.row_counting import RowCounter


def _parse_thresholds(texts: tuple[str, ...]) -> float | str | dict[str, float]:
    """One threshold for all classes, "f1", or thresholds by class."""
    if texts == ("f1",):
        return "f1"
    pairs = [pair.rpartition("=") for text in texts for pair in text.split(",")]
    limits = {name: _parse_probability(number) for name, _, number in pairs}
    if "" not in limits:
        return limits
    if len(limits) > 1:
        raise click.UsageError("--threshold takes one number for all classes, or CLASS=P for some; use one of them")
    return limits[""]


def _parse_probability(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 <= number <= 1:
        raise click.BadParameter(f"{text} is not allowed; use a number from 0 to 1.")
    return number


cost_options = OptionSection(
    "Decisions",
    define_option(
        "--cost NAME=COST...",
        "What mistakes cost: fn=10,fp=1 with two classes, TRUE:ANSWER=COST with any, and abstain=0.5 where giving "
        "no answer is allowed. The label is the answer of least expected cost.",
        is_common=True,
    ),
    define_option("--positive CLASS", "With fn and fp: the positive class. By default the rarer one."),
)

threshold_option = OptionSection(
    "Decisions",
    define_option(
        "--threshold P|CLASS=P...",
        "Leave the label empty where its probability is below P. CLASS=P is for one class: it is the label where "
        "its probability is at least P. Of several labels all with at least P are given (0.5 by default); f1 chooses P "
        "for each.",
        _parse_thresholds,
        field="thresholds",
        is_common=True,
    ),
)


def pop_costs(given: dict[str, Any]) -> Costs | None:
    """The options of `cost_options`, taken out of what a command was given."""
    texts, positive = given.pop("cost"), given.pop("positive")
    if positive is not None and not texts:
        raise click.UsageError("--positive says what fn and fp mean; use it with --cost")
    if not texts:
        return None
    from priory.evaluation.decisions import parse_costs

    try:
        return parse_costs(",".join(texts), positive)
    except DataError as error:
        raise click.BadParameter(f"{error}.", param_hint="--cost") from None


engine_options = OptionSection(
    "Engines",
    define_option(
        "--engine",
        "Count the files on a cluster, a task for each file; the model is the same.",
        click.Choice(["dask", "spark"]),
    ),
    define_option("--scheduler ADDRESS", "With --engine dask: the scheduler, such as 127.0.0.1:8786."),
    define_option("--master URL", "With --engine spark: the master, such as 'local[2]'."),
)


def pop_engine_options(
    given: dict[str, Any], paths: tuple[str, ...]
) -> tuple[AbstractContextManager[RowCounter], tuple[str, ...]]:
    """The row counter that `engine_options` choose, as a context, and absolute paths for its workers."""
    engine, scheduler, master = (given.pop(name) for name in ("engine", "scheduler", "master"))
    for name, value, needed in (("scheduler", scheduler, "dask"), ("master", master, "spark")):
        if value is not None and engine != needed:
            raise click.UsageError(f"--{name} is the cluster of --engine {needed}; use both")
    if engine is None:
        from priory.workflows.row_counting import count_rows

        return nullcontext(count_rows), paths
    if "-" in paths:
        raise click.UsageError("--engine counts files that every worker can open; give files instead of -")
    from priory.sources.arrow_files import is_url
    from priory.workflows.counted_files import open_dask, open_spark

    located = tuple(path if is_url(path) else os.path.abspath(path) for path in paths)
    return open_dask(scheduler) if engine == "dask" else open_spark(master), located
