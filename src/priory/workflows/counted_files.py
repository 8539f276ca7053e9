"""Count files on a cluster, one task for each; the model and its reports are the same as in one process.

    with open_dask(scheduler="127.0.0.1:8786") as count:
        result = priory.workflows.train("s3://bucket/mail/*.parquet", target="label", count=count)

Every worker has to see the files under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from priory.errors import DataError, import_extra
from priory.learning.counting import add_parts
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import read_ahead
from priory.workflows.dask import DaskRows
from priory.workflows.partitions import PartitionedRows
from priory.workflows.row_counting import CountedRows, RowCounter, TrainingPlan, count_rows
from priory.workflows.spark import SparkRows


@contextmanager
def open_dask(scheduler: str | None = None) -> Iterator[RowCounter]:
    """Count files on the cluster of a scheduler, or on threads of this process."""
    dd, pd, distributed = (
        import_extra(name, "--engine dask needs Dask", "'priory[dask]'")
        for name in ("dask.dataframe", "pandas", "distributed")
    )

    def number_files(count: int) -> DaskRows:
        return DaskRows(dd.from_pandas(pd.DataFrame({"id": range(count)}), npartitions=count))

    # a Client makes its cluster the default scheduler; without one Dask uses threads
    with distributed.Client(scheduler) if scheduler else nullcontext():
        yield partial(count_files, number_files)


@contextmanager
def open_spark(master: str | None = None) -> Iterator[RowCounter]:
    """Count files on a Spark cluster; without a master, on the one that Spark's own settings name."""
    builder = import_extra("pyspark.sql", "--engine spark needs PySpark", "'priory[spark]'").SparkSession.builder
    session = (builder.master(master) if master else builder).getOrCreate()
    try:
        yield partial(count_files, lambda count: SparkRows(session.range(0, count, 1, count)))
    finally:
        session.stop()


def count_files(
    number_files: Callable[[int], PartitionedRows], plan: TrainingPlan, rows: FileRows, chunks: Iterator[RowChunk]
) -> CountedRows:
    """Learn all files; ``number_files`` makes as many rows as there are files, each in a partition of its own."""
    # the task of each partition opens the file of its number; chunks of this process are not used
    names = plan.find_source_columns(rows)
    counted = number_files(len(rows.openers)).reduce((plan, rows.openers, names), count_numbered_files, add_parts)
    if counted is None:
        raise DataError("there are no files to learn from.")
    return counted


def count_numbered_files(context: tuple[TrainingPlan, Any, tuple[str, ...]], numbers: Any) -> CountedRows | None:
    """Count the files with these numbers; None if there are none."""
    plan, openers, names = context
    return add_parts(_count_file(plan, openers, names, number) for number in numbers["id"].to_numpy().tolist())


def _count_file(plan: TrainingPlan, openers: Any, names: tuple[str, ...], number: int) -> CountedRows:
    # the number seeds the draw of example rows, so that it does not depend on the tasks
    rows = FileRows([openers[number]], label=plan.column_options.label)
    return count_rows(plan, rows, read_ahead(rows.read_chunks(names)), number)
