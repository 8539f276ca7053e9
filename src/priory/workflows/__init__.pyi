"""The public names of the package; each module is imported when one of its names is first used."""

from priory.evaluation.decisions import Costs as Costs
from priory.sources import ReadOptions as ReadOptions
from priory.sources.column_types import ColumnOptions as ColumnOptions
from priory.sources.record_files import is_database as is_database
from priory.storage import inspect as inspect
from priory.storage.receipt_verifier import RefusedError as RefusedError
from priory.workflows.databases import forget_table as forget_table, train_table as train_table
from priory.workflows.erasure import (
    ExportedModel as ExportedModel,
    ReceiptFiles as ReceiptFiles,
    export as export,
    export_file as export_file,
    issue_receipt as issue_receipt,
    make_card as make_card,
    release as release,
    verify as verify,
)
from priory.workflows.evaluation import Evaluation as Evaluation, JudgingOptions as JudgingOptions, evaluate as evaluate
from priory.workflows.explanations import (
    explain as explain,
    explain_values as explain_values,
    find_counterfactuals as find_counterfactuals,
    rank_columns as rank_columns,
)
from priory.workflows.model_files import Callbacks as Callbacks, FileTask as FileTask
from priory.workflows.prediction import (
    NumberPredictions as NumberPredictions,
    PredictedRows as PredictedRows,
    Predictions as Predictions,
    ask as ask,
    predict as predict,
)
from priory.workflows.reports import ReportResult as ReportResult, audit as audit, drift as drift, report as report
from priory.workflows.row_counting import TrainingOptions as TrainingOptions
from priory.workflows.selection import (
    SelectionOptions as SelectionOptions,
    learn_contrast as learn_contrast,
    select as select,
)
from priory.workflows.training import (
    RegressionResult as RegressionResult,
    TrainingResult as TrainingResult,
    train as train,
)
from priory.workflows.updates import (
    UpdateResult as UpdateResult,
    forget as forget,
    learn as learn,
    merge as merge,
)

__all__: list[str]
