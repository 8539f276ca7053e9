"""``priory explain``: show the evidence behind a prediction."""

from __future__ import annotations

from typing import Any

import click

from priory import workflows
from priory.cli.options import (
    FILE_PATH_TYPE,
    SectionedOption,
    check_exclusive,
    get_required_key,
    json_option,
    model_argument,
    open_task,
    reading_options,
    sectioned_command,
)
from priory.cli.terminal import format_heading, list_evidence, print_item, print_json, print_lines
from priory.model.ledger_output import EVIDENCE_UNITS


@sectioned_command(
    "explain",
    short_help="Show the evidence behind a prediction.",
    epilog='Example: priory explain mail.priory "Free entry, text WIN now"',
)
@model_argument
@click.argument("values", nargs=-1, metavar="[TEXT...|COLUMN=VALUE...]")
@click.option("--from", "path", type=FILE_PATH_TYPE, metavar="FILE", help="Explain rows of this file.")
@click.option(
    "--row",
    "numbers",
    cls=SectionedOption,
    multiple=True,
    type=click.IntRange(1),
    metavar="N",
    help="Which row of the file, counted from 1; may be repeated. By default the first.",
)
@click.option(
    "--unit",
    type=click.Choice(EVIDENCE_UNITS),
    default="decibans",
    metavar="UNIT",
    help=f"What evidence is shown in: {', '.join(EVIDENCE_UNITS)}. By default decibans.",
)
@click.option(
    "--what-if", is_flag=True, help="Which single cells of the row, changed to what, would change the answer."
)
@click.option(
    "--overall", is_flag=True, help="What matters over all labelled rows of the file: each column left out in turn."
)
@click.option("--class", "label", metavar="CLASS", help="With --overall: for the rows of this class.")
@json_option
@reading_options
def explain_command(
    model: str,
    values: tuple[str, ...],
    path: str | None,
    numbers: tuple[int, ...],
    unit: str,
    what_if: bool,
    overall: bool,
    label: str | None,
    json_: bool,
    **given: Any,
) -> None:
    """Show the evidence behind a prediction: the prior, one line for each word or column, and their sum.

    The heading names the predicted class and the runner-up. Each line says how far it moves the odds between these two,
    in decibans (dB), which are 10 * log10 of the odds: with +10 dB the odds for the predicted class become ten times as
    high, with -10 dB ten times as low.

    \b
    prior             how common the two classes are among the learned rows
    prior (tempered)  the same times a weight: training found how much the prior
                      should count, so that the probabilities are right
    (together)        what columns or words add in combination
    limit of 50 rows  what is taken back: 50 rows make nobody surer than 51 to 1
    (absent tokens)   the words that the text does not contain

    --overall shows what matters in a whole file: by how many bits a row the truth is less probable if a column is left
    out, and the strongest evidence for each class.
    """
    if bool(values) == bool(path):
        raise click.UsageError("give one of these to explain: texts, COLUMN=VALUE pairs, or --from FILE")
    if (what_if or overall) and not path:
        raise click.UsageError("--what-if and --overall are about rows of a file; use --from FILE")
    check_exclusive("--what-if", "--overall")
    if label is not None and not overall:
        raise click.UsageError("--class is for a whole file; use it with --overall")
    from priory.model.ledger_output import convert_ledger_to_dict

    if path is None:
        ledgers = workflows.explain_values(model, values, key=get_required_key())
    else:
        with open_task((path,), given) as task:
            if overall:
                return _explain_file(model, task, label, json_)
            if what_if:
                return _explain_changes(model, task, numbers or (1,), json_)
            ledgers = workflows.explain(model, task, numbers or (1,))
    if json_:
        print_json([convert_ledger_to_dict(ledger) for ledger in ledgers])
    else:
        print_lines(str(ledgers.convert_unit(unit)), indent="")


def _explain_changes(model: str, task: workflows.FileTask, numbers: tuple[int, ...], json_: bool) -> None:
    found = workflows.find_counterfactuals(model, task, numbers)
    if json_:
        print_json([{**one._asdict(), "changes": [change._asdict() for change in one.changes]} for one in found])
        return
    for one in found:
        print_lines(one.describe(), indent="")


def _explain_file(model: str, task: workflows.FileTask, label: str | None, json_: bool) -> None:
    from priory.evaluation.score_table import align_text_columns
    from priory.workflows.explanations import list_class_evidence
    from priory.workflows.model_files import get_model_columns, load_classifier

    trained = load_classifier(model, task.key)
    columns = [] if get_model_columns(trained).is_one_text else workflows.rank_columns(trained, task, label=label)
    evidence = list_class_evidence(trained, task, label=label)
    if json_:
        bits = [{"column": one.name, "bits": one.bits._asdict()} for one in columns]
        print_json({"columns": bits, "evidence": evidence})
        return
    if columns:
        whose = "" if label is None else f" of {label}"
        click.echo(format_heading(f"what is lost without a column, in bits a row{whose}"))
        rows = [("column", "bits", "95 % interval")]
        rows += [(one.name, f"{one.bits.value:.3f}", f"{one.bits.low:.3f} to {one.bits.high:.3f}") for one in columns]
        print_lines("\n".join(align_text_columns(rows)))
    click.echo(format_heading("strongest evidence for each class, in decibans (+10 is ten to one)"))
    for name, lines in evidence.items():
        print_item(name, list_evidence(lines))
