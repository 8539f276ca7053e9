"""Learning from Dask data frames and bags, on the scheduler or cluster that Dask is configured to use.

    frame = dask.dataframe.read_parquet("s3://bucket/mail/*.parquet")
    model = priory.workflows.dask.fit(NaiveBayes(), frame, target="label")

Dask and pandas are imported inside functions: a caller with a Dask data frame has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from priory.errors import DataError
from priory.evaluation.scores import Scores
from priory.workflows import partitions
from priory.workflows.partitions import Answers, ContextT, ModelT, PartitionedRows, PartT, Sum, Task

if TYPE_CHECKING:
    import pandas as pd

BAG_COLUMNS = ("text", "label")  # of a bag of pairs


@dataclass(frozen=True)
class DaskRows(PartitionedRows):
    """The rows of a Dask data frame."""

    frame: Any  # dask.dataframe.DataFrame

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.frame.columns))

    @property
    def strings(self) -> tuple[str, ...]:
        from pandas.api.types import is_numeric_dtype

        types = self.frame.dtypes
        return tuple(str(name) for name in self.frame.columns if not is_numeric_dtype(types[name]))

    @property
    def dates(self) -> tuple[str, ...]:
        types = self.frame.dtypes  # such as datetime64[us], and date32[day] and timestamp[us] of Arrow
        return tuple(str(name) for name in self.frame.columns if str(types[name]).startswith(("date", "timestamp")))

    def select_columns(self, names: Sequence[str]) -> DaskRows:
        return DaskRows(self.frame[list(names)])

    def _run_tree(self, context: ContextT, count: Task[ContextT, PartT], add: Sum[PartT]) -> PartT | None:
        import dask

        # one task holds the context, which is sent to each worker once
        shared = dask.delayed(context, pure=True)
        records = [dask.delayed(count)(shared, part) for part in self.frame.to_delayed()]
        # a tree of sums: every task adds FAN_IN records
        while len(records) > 1:
            records = [
                dask.delayed(add)(records[at : at + partitions.FAN_IN])
                for at in range(0, len(records), partitions.FAN_IN)
            ]
        total: PartT | None = records[0].compute()
        return total


def fit(model: ModelT, frame: Any, target: str | None = None, sample_weight: str | None = None) -> ModelT:
    """Learn from all rows of a Dask data frame or bag; the model equals ``model.fit`` with all rows.

    Parameters
    ----------
    model : estimator
        `priory.NaiveBayes`, `priory.TextClassifier`, `priory.BayesianLinearRegression` or a class of
        `priory.naive_bayes`. It forgets what it had learned.
    frame : dask.dataframe.DataFrame or dask.bag.Bag
        A bag holds dicts, or pairs of a text and its label.
    target : str
        The column to predict; all other columns are learned from. Not needed for a bag of pairs.
    sample_weight : str, optional
        The column of weights.

    Returns
    -------
    model
    """
    rows, target = _read_rows(frame, target)
    return partitions.fit_partitions(model, rows, target, sample_weight)


def forget(model: ModelT, frame: Any, target: str | None = None, sample_weight: str | None = None) -> ModelT:
    """Forget all rows of a Dask data frame or bag, as if they had never been learned."""
    rows, target = _read_rows(frame, target)
    return partitions.forget_partitions(model, rows, target, sample_weight)


def evaluate(model: object, frame: Any, target: str | None = None) -> Scores:
    """Score learned rows, each by a model that has not seen it.

    At most 5,000 distinct rows are judged, or 100,000 by a model without corrections; they are a fair sample that does
    not depend on the partitions.
    """
    rows, target = _read_rows(frame, target)
    return partitions.evaluate_partitions(model, rows, target)


def predict(model: object, frame: Any, name: str = "prediction") -> Any:
    """Add a column of predicted labels, lazily."""
    return _add_answers(Answers.of(model, DaskRows(frame), "predict", name), frame)


def predict_proba(model: object, frame: Any, name: str = "probability") -> Any:
    """Add a column for the probability of each class, lazily."""
    return _add_answers(Answers.of(model, DaskRows(frame), "predict_proba", name), frame)


def _add_answers(answers: Answers, frame: Any) -> Any:
    import dask

    # an empty frame with the columns and types of the result
    meta = append_pandas_answers(frame._meta, answers)
    return frame.map_partitions(append_pandas_answers, dask.delayed(answers, pure=True), meta=meta)


def append_pandas_answers(rows: pd.DataFrame, answers: Answers) -> pd.DataFrame:
    """Add the answers to a partition."""
    import pandas as pd

    return rows.assign(**{name: pd.Series(column, rows.index) for name, column in answers.compute(rows).items()})


def _read_rows(frame: Any, target: str | None) -> tuple[DaskRows, str]:
    """Return the rows of a data frame or bag, and the name of the target."""
    import pandas as pd

    if not hasattr(frame, "to_dataframe"):
        if target is None:
            raise DataError("which column is to be predicted? Give target=, the name of a column.")
        return DaskRows(frame), target
    # a bag has no schema: its first element stands for all
    [first] = frame.take(1, npartitions=-1)
    if isinstance(first, dict):
        if target is None:
            raise DataError("which key is to be predicted? Give target=, a key of the dicts in the bag.")
        return DaskRows(frame.to_dataframe(meta=pd.DataFrame([first]).iloc[:0])), target
    names = (BAG_COLUMNS[0], target or BAG_COLUMNS[1])
    return DaskRows(frame.to_dataframe(meta=pd.DataFrame([first], columns=list(names)).iloc[:0])), names[1]
