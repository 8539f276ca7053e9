"""Learning from Spark data frames: partitions arrive as Arrow batches, statistics return as binary cells.

    frame = spark.read.parquet("s3a://bucket/mail")
    model = priory.workflows.spark.fit(NaiveBayes(), frame, target="label")

It needs no RDDs, so Spark Connect works too. Priory has to be installed on the executors. PySpark is imported inside
functions: a caller with a Spark data frame has it.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from priory.errors import MissingDependencyError, PrioryError
from priory.evaluation.scores import Scores
from priory.workflows import partitions
from priory.workflows.partitions import Answers, ContextT, ModelT, PartitionedRows, PartT, Sum, Task

MIN_CHUNK_BYTES = 1 << 25  # of Arrow batches that are counted together
USUAL_PARTITIONS = 64  # where Spark does not say how many there are
RECORD_SCHEMA = "record binary"


@dataclass(frozen=True)
class SparkRows(PartitionedRows):
    """The rows of a Spark data frame."""

    frame: Any  # pyspark.sql.DataFrame

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @property
    def strings(self) -> tuple[str, ...]:
        from pyspark.sql.types import BooleanType, NumericType

        fields = self.frame.schema.fields
        return tuple(field.name for field in fields if not isinstance(field.dataType, NumericType | BooleanType))

    @property
    def dates(self) -> tuple[str, ...]:
        from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

        kinds = DateType | TimestampType | TimestampNTZType
        return tuple(field.name for field in self.frame.schema.fields if isinstance(field.dataType, kinds))

    def select_columns(self, names: Sequence[str]) -> SparkRows:
        return SparkRows(self.frame.select(*names))

    def _run_tree(self, context: ContextT, count: Task[ContextT, PartT], add: Sum[PartT]) -> PartT | None:
        shared = pickle.dumps(context)
        records = self.frame.mapInArrow(partial(count_partition, shared, count, add), RECORD_SCHEMA)
        # a tree of sums: every level has an eighth of the partitions of the level before
        width = self._count_partitions()
        while width > 1:
            width = -(-width // partitions.FAN_IN)
            records = records.repartition(width).mapInArrow(partial(add_batches, add), RECORD_SCHEMA)
        with explain_worker_errors():
            return add(_unpack_records(row.record for row in records.toLocalIterator()))

    def _count_partitions(self) -> int:
        from pyspark.errors import PySparkNotImplementedError

        try:
            return int(self.frame.rdd.getNumPartitions())
        except (PySparkNotImplementedError, AttributeError):  # Spark Connect has no RDDs
            return USUAL_PARTITIONS


@contextmanager
def explain_worker_errors() -> Iterator[None]:
    """Raise a one-line error if the workers run a Python without Priory."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        found = re.search(r"No module named '[\w.]+'|PYTHON_VERSION_MISMATCH", str(error))
        if not found:
            raise
        raise MissingDependencyError(
            f"the workers of Spark run a Python that cannot run Priory ({found[0]}): install Priory there, and set "
            "PYSPARK_PYTHON to that Python before the session starts; on one machine it is sys.executable.",
            name="priory",
        ) from None


def count_partition(
    context: bytes, count: Task[Any, PartT], add: Sum[PartT], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Count all batches of a partition into one record, in a batch of one row."""
    # unpickled once for each partition, not for each batch
    shared = pickle.loads(context)
    return _pack_sum(add, (count(shared, rows) for rows in _join_batches(batches)))


def add_batches(add: Sum[PartT], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the records of all batches, one at a time, into a batch of one row."""
    return _pack_sum(add, _unpack_records(cell.as_py() for batch in batches for cell in batch.column(0)))


def _join_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches into tables of about 32 MiB, which are faster to count."""
    joined: list[pa.RecordBatch] = []
    for batch in batches:
        joined.append(batch)
        if sum(kept.nbytes for kept in joined) >= MIN_CHUNK_BYTES:
            yield pa.Table.from_batches(joined)
            joined = []
    if joined:
        yield pa.Table.from_batches(joined)


def _pack_sum(add: Sum[PartT], records: Iterable[PartT | None]) -> Iterator[pa.RecordBatch]:
    """Pack the sum of records, or the first error in them: raising it would only repeat the task."""
    try:
        total: object = add(records)
    except PrioryError as error:
        total = error
    if total is not None:
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(total)], pa.binary())], ["record"])


def _unpack_records(cells: Iterable[bytes]) -> Iterator[Any]:
    for cell in cells:
        record = pickle.loads(cell)
        if isinstance(record, PrioryError):
            raise record
        yield record


def fit(model: ModelT, frame: Any, target: str, sample_weight: str | None = None) -> ModelT:
    """Learn from all rows of a Spark data frame; the model equals ``model.fit`` with all rows.

    Parameters
    ----------
    model : estimator
        `priory.NaiveBayes`, `priory.TextClassifier`, `priory.BayesianLinearRegression` or a class of
        `priory.naive_bayes`. It forgets what it had learned.
    frame : pyspark.sql.DataFrame
    target : str
        The column to predict; all other columns are learned from.
    sample_weight : str, optional
        The column of weights.

    Returns
    -------
    model
    """
    return partitions.fit_partitions(model, SparkRows(frame), target, sample_weight)


def forget(model: ModelT, frame: Any, target: str, sample_weight: str | None = None) -> ModelT:
    """Forget all rows of a Spark data frame, as if they had never been learned."""
    return partitions.forget_partitions(model, SparkRows(frame), target, sample_weight)


def evaluate(model: object, frame: Any, target: str) -> Scores:
    """Score learned rows, each by a model that has not seen it.

    At most 5,000 distinct rows are judged, or 100,000 by a model without corrections; they are a fair sample that does
    not depend on the partitions.
    """
    return partitions.evaluate_partitions(model, SparkRows(frame), target)


def predict(model: object, frame: Any, name: str = "prediction") -> Any:
    """Add a column of predicted labels, lazily."""
    return _add_answers(Answers.of(model, SparkRows(frame), "predict", name), frame)


def predict_proba(model: object, frame: Any, name: str = "probability") -> Any:
    """Add a column for the probability of each class, lazily."""
    return _add_answers(Answers.of(model, SparkRows(frame), "predict_proba", name), frame)


def _add_answers(answers: Answers, frame: Any) -> Any:
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

    # the type of the added columns by NumPy's kind; anything else is a string
    types = {"f": DoubleType(), "i": LongType(), "b": BooleanType()}
    added = types.get(answers.find_type().kind, StringType())
    schema = StructType([*frame.schema.fields, *(StructField(name, added) for name in answers.names)])
    return frame.mapInArrow(partial(append_arrow_answers, pickle.dumps(answers)), schema)


def append_arrow_answers(pickled: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the answers to each batch."""
    answers: Answers = pickle.loads(pickled)
    for batch in batches:
        for name, column in answers.compute(pa.Table.from_batches([batch])).items():
            cells = [str(value) for value in column] if column.dtype.kind == "O" else np.ascontiguousarray(column)
            batch = batch.append_column(name, pa.array(cells))
        yield batch
