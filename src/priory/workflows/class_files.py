"""Read costs of mistakes and class priors from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from priory.errors import DataError
from priory.evaluation.costs import ABSTAIN_NAME, Costs, parse_finite
from priory.sources.byte_streams import format_path
from priory.sources.cell_parsing import cast_to_text
from priory.workflows.model_files import FileTask

if TYPE_CHECKING:
    from priory.workflows.model_files import PathLike


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
