"""``priory train``: learn a model from files, and print its scores, evidence and audit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import priory
from priory import workflows
from priory.cli import options, terminal
from priory.cli.decision_options import engine_options, pop_engine_options

if TYPE_CHECKING:
    from priory.leakage.findings import Findings

MAX_CLASSES_SHOWN, MAX_COLUMNS_SHOWN, MAX_UNREADABLE_SHOWN = 10, 12, 5


@options.sectioned_command(
    "train",
    short_help="Train a model on files.",
    epilog="Example: priory train mail.csv --target label --report mail.html",
)
@options.files_argument
@options.add_option(
    "-o,--out MODEL", "The model file. By default named after the data, with .priory.", options.FILE_PATH_TYPE
)
@options.add_option("--report HTML", "Also write an HTML report.", options.FILE_PATH_TYPE)
@options.add_option("--multilabel SEPARATOR", "The target holds any number of labels, with this sign between them.")
@options.add_option("--hierarchy", "With --multilabel: labels are paths, such as sport/tennis.")
@options.training_options
@options.force_option
@options.json_option
@options.column_options
@options.class_options
@options.learning_options
@options.reading_options
@engine_options
@options.receipt_options
def train_command(
    paths: tuple[str, ...],
    out: str | None,
    report: str | None,
    multilabel: str | None,
    hierarchy: bool,
    force: bool,
    json_: bool,
    **given: Any,
) -> None:
    """Train a model on FILEs and write it to a model file.

    FILEs are CSV, TSV, JSON lines, Parquet or Arrow files, which may be compressed with gzip, zstd, bzip2 or xz; tables
    of SQLite and DuckDB databases; sheets of Excel workbooks; folders of such files; a folder of texts with one folder
    for each class; mboxes and maildirs; patterns such as 'part-*.csv'; or - for standard input. They may be larger than
    memory. A URL such as 's3://bucket/mail/*.parquet' names Parquet files elsewhere, and one such as
    'duckdb:///sales.db?table=orders' (or sqlite, postgresql) a table that is counted inside its database (--memory 0).

    After all rows are learned, the probabilities are corrected to match how often the model is right about rows that it
    has not learned. The scores are cross-validated: each row is judged by a model, corrections included, that has not
    seen it. Next to them is the base rate, the score of always answering the most common class. Fewer than six rows are
    not scored. A target of more than 20 different numbers is a number to predict, by Bayesian linear regression;
    --classes takes each of them for a class.

    Evidence is in decibans, 10 * log10 of the odds: +10 means ten to one for a class against all others, +20 a hundred
    to one.
    """
    training, files = options.pop_training_options(given), options.pop_receipt_files(given, force)
    engine, located = pop_engine_options(given, paths)
    try:
        made = out or _make_model_path(paths[0])
        model_path = options.require_output_path(made, paths, force, "a model", "model.priory")
    except FileExistsError:
        with options.open_task(located, given) as task:
            task.columns.find_target(task.open())  # a wrong target is reported before a file that would be replaced
        raise
    report_path = options.check_output_path(report, paths, force)
    if multilabel is not None:
        with options.open_task(located, given) as task:
            _train_labels(task, multilabel, hierarchy, model_path, json_)
        return
    result: workflows.TrainingResult | workflows.RegressionResult
    with options.open_task(located, given) as task, engine as count:
        learn = workflows.train_table if workflows.is_database(paths[0]) else partial(workflows.train, count=count)
        result = learn(task, options=training)
        with task.callbacks.activity("writing the model"):
            if files is not None:
                files.issue_state(model_path, result.model)
            priory.save(result.model, model_path)
        if report_path and isinstance(result, workflows.TrainingResult):
            with task.callbacks.activity("writing the report"):
                result.report(terminal.format_command_line()).save(report_path)
        elif report_path:
            task.callbacks.notify("there is no report about a regression yet; the model is written")
            report_path = None
    if json_:
        terminal.print_json({**result.as_dict(), "model": model_path, "report": report_path})
    elif isinstance(result, workflows.TrainingResult):
        _print_summary(result, model_path, report_path)
    else:
        _print_regression(result, model_path)
    if unreadable := getattr(result, "unreadable_files", ()):  # the model is written; the exit code says it lacks them
        named = ", ".join(unreadable[:MAX_UNREADABLE_SHOWN])
        from priory.workflows.model_files import format_count  # not before the files are read

        n_files = format_count(len(unreadable), "file")
        raise PermissionError(13, f"{n_files} could not be opened ({named}); the others were learned")


def _train_labels(task: workflows.FileTask, separator: str, hierarchy: bool, model_path: str, json_: bool) -> None:
    from priory.workflows.label_files import train_labels

    model = train_labels(task, separator, hierarchy)
    scores = model.evaluate()
    priory.save(model.estimator_, model_path)
    if json_:
        terminal.print_json({"scores": scores.to_dict(), "model": model_path})
    else:
        terminal.print_heading("scores: each row judged by a model that has not seen it")
        terminal.print_lines(str(scores))
        click.echo(f"wrote {model_path}; next: priory predict {model_path} FILE")


def _make_model_path(path: str) -> str:
    """The name of the data with .priory, in the current folder."""
    if path == "-":
        raise click.UsageError("standard input has no name for the model file; use -o model.priory")
    name = Path(path.partition("?")[0].rstrip("/") if workflows.is_database(path) else path.rstrip("/")).name
    if any(c in name for c in "*?["):
        return "model.priory"
    for suffix in (".gz", ".zst", ".bz2", ".xz"):
        name = name.removesuffix(suffix)
    return f"{Path(name).stem or 'model'}.priory"


def _print_summary(result: workflows.TrainingResult, model_path: str, report_path: str | None) -> None:
    counts = [f"{terminal.escape_unprintable(label)} {n:,.0f}" for label, n in result.classes.items()]
    listed = ", ".join(_shorten_list(counts, MAX_CLASSES_SHOWN))
    terminal.print_heading(f"{result.n_rows:,} rows, {len(counts)} classes", f": {listed}")
    terminal.print_heading("columns, by the family that explains them best")
    for family, names in _group_by_family(result.families).items():
        terminal.print_item(family, _shorten_list(names, MAX_COLUMNS_SHOWN))
    if result.scores is not None:
        n_scored = len(result.scores.truth)
        sample = "" if n_scored == result.n_rows else f", on {n_scored:,} of the rows"
        terminal.print_heading(f"scores{sample}: each row judged by a model that has not seen it")
        terminal.print_lines(str(result.scores))
    if result.evidence:
        terminal.print_evidence(dict(list(result.evidence.items())[:MAX_CLASSES_SHOWN]))
    _print_findings(result.findings)
    written = f"{model_path} and {report_path}" if report_path else model_path
    click.echo(f"wrote {written}; next: priory predict {model_path} FILE")


def _print_regression(result: workflows.RegressionResult, model_path: str) -> None:
    from priory.evaluation.regression_scores import format_quantity

    target = terminal.escape_unprintable(result.model.target_)
    source = f": {target} from {len(result.families)} columns"
    terminal.print_heading(f"{result.n_rows:,} rows, a number to predict", source)
    if result.scores is not None:
        terminal.print_heading("scores: each row judged by a model that has not learned it (leave-one-out)")
        terminal.print_lines(str(result.scores))
    terminal.print_heading("strongest weights, with their standard deviation")
    for name, weight, deviation in result.list_weights():
        terminal.print_item(name, [f"{format_quantity(weight)} ± {format_quantity(deviation)}"])
    _print_findings(result.findings)
    click.echo(f"wrote {model_path}; next: priory predict {model_path} FILE")


def _print_findings(findings: Findings | None) -> None:
    if findings is not None:
        terminal.print_heading("leakage audit", "" if findings else ": nothing found")
        for finding in findings:
            terminal.print_item(str(finding.severity), [finding.what])


def _shorten_list(names: list[str], max_names: int) -> list[str]:
    """The first names, and how many more there are."""
    return names if len(names) <= max_names else [*names[:max_names], f"and {len(names) - max_names} more"]


def _group_by_family(families: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, family in families.items():
        found.setdefault(family, []).append(name)
    return found
