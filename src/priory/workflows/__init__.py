"""The commands of ``priory`` as Python functions: from files to models and from models to answers.

    train       learn a model from files of any size; returns the model, its scores, its evidence and the audit
    predict     label the rows of files
    explain     show the evidence behind the predictions for rows of a file
    explain_values   show the evidence behind the prediction for texts, or for cells by column name
    evaluate    compare a model's predictions with the labels of files
    report      write an HTML report about a model on the rows of files
    ask         choose rows of files to label next
    audit       look for leakage in files
    drift       compare the rows of files with newer rows
    learn       learn the rows of files into a model file
    forget      unlearn the rows of files, exactly
    refresh     fit the corrections of a model file again
    merge       add the statistics of several models
    rank_columns   rank columns by how much worse a model predicts without them
    find_counterfactuals   find changes of a single cell that change the prediction for a row
    inspect     list what a model file contains and would reveal
    issue_receipt   state what a model file has learned in a signed receipt
    verify      verify a receipt of forgetting
    make_card   describe a model file on a page
    release     write a differentially private copy of a model file

Files are read a block at a time, so they may be larger than memory. Every function takes paths with the keyword
arguments of `FileTask`, or a `FileTask`: the files, the `ReadOptions` for parsing them, the `ColumnOptions` for their
columns, the key of signed models, and `Callbacks` for progress and notes. Nothing is printed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priory.evaluation.decisions import Costs
    from priory.sources import ReadOptions
    from priory.sources.column_types import ColumnOptions
    from priory.storage import inspect
    from priory.workflows.erasure import ReceiptFiles, issue_receipt, make_card, release, verify
    from priory.workflows.evaluation import Evaluation, JudgingOptions, evaluate
    from priory.workflows.explanations import explain, explain_values, find_counterfactuals, rank_columns
    from priory.workflows.model_files import Callbacks, FileTask
    from priory.workflows.prediction import NumberPredictions, Predictions, ask, predict
    from priory.workflows.reports import ReportResult, audit, drift, report
    from priory.workflows.row_counting import TrainingOptions
    from priory.workflows.training import RegressionResult, TrainingResult, train
    from priory.workflows.updates import UpdateResult, forget, learn, merge, refresh

__all__ = [
    "Callbacks",
    "ColumnOptions",
    "Costs",
    "Evaluation",
    "FileTask",
    "JudgingOptions",
    "NumberPredictions",
    "Predictions",
    "ReadOptions",
    "ReceiptFiles",
    "RegressionResult",
    "ReportResult",
    "TrainingOptions",
    "TrainingResult",
    "UpdateResult",
    "ask",
    "audit",
    "drift",
    "evaluate",
    "explain",
    "explain_values",
    "find_counterfactuals",
    "forget",
    "inspect",
    "issue_receipt",
    "learn",
    "make_card",
    "merge",
    "predict",
    "rank_columns",
    "refresh",
    "release",
    "report",
    "train",
    "verify",
]

# Public name -> module. Modules are imported on first use, because scikit-learn and pyarrow take a second to import.
_HOME = {
    "Callbacks": "workflows.model_files",
    "ColumnOptions": "sources.column_types",
    "Costs": "evaluation.decisions",
    "Evaluation": "workflows.evaluation",
    "FileTask": "workflows.model_files",
    "JudgingOptions": "workflows.evaluation",
    "NumberPredictions": "workflows.prediction",
    "Predictions": "workflows.prediction",
    "ReadOptions": "sources",
    "ReceiptFiles": "workflows.erasure",
    "RegressionResult": "workflows.training",
    "ReportResult": "workflows.reports",
    "TrainingOptions": "workflows.row_counting",
    "TrainingResult": "workflows.training",
    "UpdateResult": "workflows.updates",
    "ask": "workflows.prediction",
    "audit": "workflows.reports",
    "drift": "workflows.reports",
    "evaluate": "workflows.evaluation",
    "explain": "workflows.explanations",
    "explain_values": "workflows.explanations",
    "find_counterfactuals": "workflows.explanations",
    "forget": "workflows.updates",
    "inspect": "storage",
    "issue_receipt": "workflows.erasure",
    "learn": "workflows.updates",
    "make_card": "workflows.erasure",
    "merge": "workflows.updates",
    "predict": "workflows.prediction",
    "rank_columns": "workflows.explanations",
    "refresh": "workflows.updates",
    "release": "workflows.erasure",
    "report": "workflows.reports",
    "train": "workflows.training",
    "verify": "workflows.erasure",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'priory.workflows' has no attribute {name!r}")
    return getattr(import_module(f"priory.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
