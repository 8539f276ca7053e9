"""Tables about classes: costs of mistakes, prior probabilities and weights, read from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Literal

from priory.errors import DataError
from priory.evaluation.decisions import ABSTAIN_NAME, Costs, find_class_index, parse_finite
from priory.model.model_statistics import ClassWeight
from priory.sources.byte_streams import format_path
from priory.sources.cell_parsing import cast_to_text
from priory.workflows.model_files import FileTask

if TYPE_CHECKING:
    from priory.workflows.model_files import PathLike, TableOrTextClassifier


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
        learned = model.learned_
        declared = replace(learned, statistics=learned.statistics.declare_classes(learned.classes))
        model.adopt(declared, finish=False)
    else:
        model.set_params(class_prior=prior)
    model.class_prior_  # noqa: B018  # weights that are impossible are reported here


def read_costs(path: PathLike) -> Costs:
    """Read a cost matrix.

    The first column has the true classes, each other column the costs of the answer that it is named after; the column
    ``abstain`` has the costs of giving no answer. An answer without a column costs 1 where it is wrong.
    """
    rows = FileTask(path).open()
    truth, *answers = rows.names
    if not answers:
        raise DataError(f"{format_path(path)}: has one column; give one for each answer, after the true class")
    mistakes: dict[tuple[str, str], float] = {}
    abstain: dict[str, float] = {}
    for chunk in rows.read_chunks(rows.names):
        labels = cast_to_text(chunk.batch.column(truth)).to_pylist()
        for answer in answers:
            for row, cell in enumerate(cast_to_text(chunk.batch.column(answer)).to_pylist()):
                cost = parse_finite(cell or "", chunk.places.locate_cell(row, answer), "a cost")
                if answer == ABSTAIN_NAME:
                    abstain[labels[row]] = cost
                else:
                    mistakes[labels[row], answer] = cost
    return Costs(mistakes, abstain=abstain or None)


def read_class_prior(path: PathLike) -> dict[str, float]:
    """Read classes from the first column of a file, and their probabilities or counts from the second."""
    rows = FileTask(path).open()
    if len(rows.names) < 2:
        raise DataError(
            f"{format_path(path)}: has one column; give classes in the first and probabilities in the second"
        )
    label, share = rows.names[:2]
    prior: dict[str, float] = {}
    for chunk in rows.read_chunks((label, share)):
        names, cells = (cast_to_text(chunk.batch.column(name)).to_pylist() for name in (label, share))
        for row, (name, cell) in enumerate(zip(names, cells, strict=True)):
            prior[name] = parse_finite(cell or "", chunk.places.locate_cell(row, share), "a probability")
    return prior
