"""``priory evaluate``, ``report``, ``audit`` and ``drift``: scores, an HTML page, leakage in data, changes of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from priory import workflows
from priory.cli import options
from priory.cli.decision_options import cost_options, pop_costs
from priory.cli.terminal import format_command_line, format_heading, print_json, print_lines

if TYPE_CHECKING:
    from priory.workflows.evaluation import DecisionTables


learned_option = options.OptionSection(
    "Judging",
    options.define_option(
        "--learned",
        "MODEL has learned these rows: predict each by a model that has not (leave-one-out, or folds).",
        is_common=True,
    ),
)
judging_options = options.OptionSection(
    "Judging",
    options.define_option("--folds K", parse=click.IntRange(2), is_common=True),
    options.define_option("--groups COLUMN"),
    options.define_option("--time COLUMN"),
    record="JudgingOptions",
)
comparison_options = options.OptionSection(
    "Judging",
    options.define_option("--curve", "Learned rows: also score models of fewer rows (the learning curve)."),
    options.define_option("--by COLUMN...", "Also score the groups of rows that a column makes."),
    options.define_option(
        "--compare MODEL...",
        "Also score another model on the same rows, with an interval for the difference; may be repeated.",
        options.FILE_PATH_TYPE,
    ),
)
table_options = options.OptionSection(
    "Decisions",
    options.define_option("--thresholds", "Precision, recall and cost by threshold, for one class."),
)


@options.sectioned_command(
    "evaluate", short_help="Compare predictions with labels.", epilog="Example: priory evaluate mail.priory test.csv"
)
@options.model_argument
@options.files_argument
@options.json_option
@learned_option
@judging_options
@comparison_options
@table_options
@cost_options
@options.column_options
@options.reading_options
def evaluate_command(
    model: str, paths: tuple[str, ...], learned: bool, thresholds: bool, json_: bool, **given: Any
) -> None:
    """Compare the predictions of MODEL for the rows of FILEs with their labels.

    Each score has a 95 % interval, and next to it the base rate: the score of always answering the most common class.
    Fewer than six rows, or rows of which no two have the same label, are too few to judge a model by: the command says
    so and gives no scores.

    The rows are taken for new ones. For rows that MODEL has learned use --learned, or one of --folds, --groups, --time
    and --curve: each row is then judged by a model that has not learned it, derived by subtraction.
    --thresholds is about one class: --positive, by default the rarer of two.
    """
    positive = given["positive"]
    costs = pop_costs({**given, "positive": positive if given["cost"] else None})
    options.check_exclusive("--groups", "--time")
    from priory.workflows.evaluation import tabulate_decisions

    judging = workflows.JudgingOptions(**judging_options.pop(given))
    compared = comparison_options.pop(given)
    others = {name: name for name in compared.pop("compare", ())}
    learned = learned or not judging.is_default or compared["curve"]
    with options.open_task(paths, given) as task:
        evaluation = workflows.evaluate(model, task, learned=learned, judging=judging, others=others, **compared)
        tables = tabulate_decisions(evaluation, costs, positive, thresholds=thresholds)
    if json_:
        print_json(_convert_to_dict(evaluation, tables))
    else:
        _print_evaluation(evaluation, tables, learned)


def _convert_to_dict(evaluation: workflows.Evaluation, tables: DecisionTables) -> dict[str, object]:
    return {
        "rows": evaluation.n_rows,
        "scores": evaluation.scores.to_dict(),
        "by": {name: groups.to_dict() for name, groups in evaluation.by.items()},
        "compared": {name: scores.to_dict() for name, scores in evaluation.others.items()},
        "differences": evaluation.list_differences(),
        "curve": {str(n_rows): scores.to_dict() for n_rows, scores in evaluation.curve.items()},
        **tables.to_dict(),
    }


def _print_evaluation(evaluation: workflows.Evaluation, tables: DecisionTables, learned: bool) -> None:
    from priory.evaluation.comparison import format_comparison, format_curve

    if learned:
        how = "each row judged by a model that has not learned it"
        folds = getattr(evaluation.scores, "folds", None)
        click.echo(format_heading(f"{f'{folds} folds' if folds else 'leave-one-out'}: {how}"))
    print_lines(str(evaluation.scores), indent="")
    for name, groups in evaluation.by.items():
        _print_block(f"by {name}", str(groups))
    if evaluation.others:
        _print_block("on the same rows", format_comparison(evaluation.list_models()))
    if evaluation.curve:
        _print_block("learning curve: models of some rows, judged on the others", format_curve(evaluation.curve))
    for block in tables.list_blocks():
        click.echo()
        print_lines(block, indent="")


def _print_block(title: str, text: str) -> None:
    click.echo("\n" + format_heading(title))
    print_lines(text, indent="")


@options.sectioned_command(
    "audit",
    short_help="Look for leakage in the data.",
    epilog="Example: priory audit train.csv --test test.csv --target label",
)
@options.files_argument
@options.add_option(
    "--test FILE...", "The rows that a model will be tested on; may be repeated.", options.FILE_PATH_TYPE, field="tests"
)
@options.add_option(
    "--groups COLUMN", "Rows with the same value, such as a person, must not be on both sides of a split."
)
@options.add_option("--time COLUMN", "Test rows must be later than training rows in this column.")
@options.json_option
@options.column_options
@options.reading_options
def audit_command(
    paths: tuple[str, ...], tests: tuple[str, ...], groups: str | None, time: str | None, json_: bool, **given: Any
) -> None:
    """Look for leakage: information in FILEs that a model could learn from and will not have when it is used.

    Findings are low (worth knowing), medium (look before you trust a score) or high (the score cannot be trusted). The
    exit code is 3 if any finding is medium or high, else 0.
    """
    with options.open_task(paths, given, more_paths=tests) as task:
        findings = workflows.audit(task, test=tests, groups=groups, time=time)
    if json_:
        click.echo(findings.to_json())
    else:
        print_lines(str(findings), indent="")
    raise click.exceptions.Exit(findings.exit_code)


@options.sectioned_command(
    "drift",
    short_help="Compare rows with newer rows.",
    epilog="Example: priory drift january.csv --new february.csv --target label",
)
@options.files_argument
@options.add_option(
    "--new FILE...", "The newer rows; may be repeated.", options.FILE_PATH_TYPE, field="new", required=True
)
@options.add_option(
    "--false-alarms",
    "The probability of an alarm if nothing has changed.",
    click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
)
@options.add_option("--stream", "The newer rows are in the order of time: find the row of the change.")
@options.json_option
@options.column_options
@options.reading_options
def drift_command(
    paths: tuple[str, ...], new: tuple[str, ...], false_alarms: float, stream: bool, json_: bool, **given: Any
) -> None:
    """Compare the rows of FILEs with newer rows: which columns, and which words of texts, have changed?

    Each line is a column or word with its share before and after, and the evidence in decibans (+20 is a hundred to
    one). With --target columns are compared within each class. The exit code is 3 if there is drift, else 0.
    """
    with options.open_task(paths, given, more_paths=new) as task:
        found = workflows.drift(task, new=new, false_alarms=false_alarms, stream=stream)
    print_json(found.to_dict()) if json_ else print_lines(str(found), indent="")
    raise click.exceptions.Exit(3 if found else 0)


@options.sectioned_command(
    "report", short_help="Write an HTML report.", epilog="Example: priory report mail.priory test.csv -o report.html"
)
@options.model_argument
@options.files_argument
@options.add_option("--learned", "MODEL has learned these rows: predict each by a model that has not (leave-one-out).")
@options.add_option("--no-audit", "Do not look for leakage in the rows.")
@options.add_option("-o,--out HTML", "The page to write.", options.FILE_PATH_TYPE, required=True)
@options.force_option
@options.json_option
@options.column_options
@options.reading_options
def report_command(
    model: str, paths: tuple[str, ...], learned: bool, no_audit: bool, out: str, force: bool, json_: bool, **given: Any
) -> None:
    """Write a report about MODEL on the rows of FILEs as one HTML page.

    It has scores, calibration as a whole and of each class, right and wrong answers, the learning curve, the strongest
    evidence, the worst mistakes, the columns with a small figure each, what was learned, the leakage audit, and how to
    make it again. The page needs nothing else, and works under a strict content security policy.

    The rows are taken for new ones, which MODEL has not learned; for those that it was trained on, use --learned.
    """
    report_path = options.require_output_path(out, (model, *paths), force, "a report", "report.html")
    with options.open_task(paths, given) as task:
        page, n_rows = workflows.report(model, task, learned=learned, audit=not no_audit, command=format_command_line())
    page.save(report_path)
    print_json({"report": report_path, "rows": n_rows}) if json_ else click.echo(f"wrote {report_path}")
