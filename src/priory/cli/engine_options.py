"""Options that count files on a Dask or Spark cluster."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from priory.cli.sections import OptionSection, define_option

if TYPE_CHECKING:
    from priory.workflows.row_counting import RowCounter

engine_options = OptionSection(
    "Engines",
    define_option(
        "--engine",
        type=click.Choice(["dask", "spark"]),
        help="Count the files on a cluster, a task for each file; the model is the same.",
    ),
    define_option("--scheduler", metavar="ADDRESS", help="With --engine dask: the scheduler, such as 127.0.0.1:8786."),
    define_option("--master", metavar="URL", help="With --engine spark: the master, such as 'local[2]'."),
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
    from priory.engines.files import open_dask, open_spark
    from priory.sources.remote_files import is_url

    located = tuple(path if is_url(path) else os.path.abspath(path) for path in paths)
    return open_dask(scheduler) if engine == "dask" else open_spark(master), located
