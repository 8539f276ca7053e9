"""``priory predict``, ``explain`` and ``ask``: answers for rows, the evidence behind them, and rows to label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

import priory
from priory import workflows
from priory.cli import options
from priory.cli.decision_options import cost_options, pop_costs, threshold_option
from priory.cli.terminal import print_evidence, print_heading, print_json, print_lines
from priory.model.ledger_output import EVIDENCE_UNITS

answer_options = options.OptionSection(
    "Options",
    options.define_option(
        "--proba", "Add the probability of every class, as probability_CLASS.", field="probabilities"
    ),
    options.define_option(
        "--top K", "Give the K most probable classes: label_2, probability_2 and so on.", click.IntRange(1)
    ),
)


@options.sectioned_command(
    "predict", short_help="Predict the labels of rows.", epilog="Example: priory predict mail.priory new.csv -o out.csv"
)
@options.model_argument
@options.files_argument
@options.add_option("--raw", "Do not escape cells of a CSV that a spreadsheet would take for formulas.")
@answer_options
@options.output_options
@threshold_option
@cost_options
@options.reading_options
def predict_command(
    model: str, paths: tuple[str, ...], out: str | None, raw: bool, force: bool, json_: bool, **given: Any
) -> None:
    """Predict the labels of the rows of FILEs with MODEL.

    The output has all columns of FILEs and three more: label, probability and certainty (or predicted_label and so on,
    where FILEs have a column of that name). Certainty is the log-odds of the label in decibans, 10 * log10 of the odds:
    +10 means ten to one, +20 a hundred to one. Where there is no label, both belong to the most probable class.

    With costs the label is the answer of least expected cost, and a column expected_cost says how much that is. --json
    writes JSON lines. A line on standard error sums up: rows, the share of each label, how certain they are, how many
    have none, and whether the classes have drifted since training.
    """
    costs, threshold = pop_costs(given), threshold_option.pop(given).get("thresholds")
    if costs is not None and threshold is not None:
        raise click.UsageError("costs and --threshold exclude each other; use one of them")
    out_path = options.check_output_path(out, (model, *paths), force)
    with options.open_task(paths, given) as task:
        rows = workflows.predict(model, task, threshold=threshold, costs=costs, **answer_options.pop(given))
        _write_rows(rows, task, out_path, json_, safe=not raw)


def _write_rows(
    rows: workflows.PredictedRows, task: workflows.FileTask, out_path: str | None, as_json: bool, safe: bool = True
) -> None:
    """Write rows, and describe them in a note."""
    rows.write(out_path, "jsonl" if as_json else None, safe=safe)
    for line in rows.describe():
        task.callbacks.notify(line)


@options.sectioned_command(
    "ask", short_help="Choose rows to label next.", epilog="Example: priory ask mail.priory new.csv -n 20 -o label.csv"
)
@options.model_argument
@options.files_argument
@options.add_option("-n,--number N", "How many rows to choose.", click.IntRange(1), default=20, field="n")
@options.output_options
@options.reading_options
def ask_command(
    model: str, paths: tuple[str, ...], n: int, out: str | None, force: bool, json_: bool, **given: Any
) -> None:
    """Choose the rows of FILEs whose labels would teach MODEL most: uncertain, like many others, unlike each other.

    The output has these rows, the most useful first, with their number and the information of the label in nats. A line
    on standard error tells what accuracy to expect once they are labelled, and when more labels gain little.
    """
    out_path = options.check_output_path(out, (model, *paths), force)
    with options.open_task(paths, given) as task:
        _write_rows(workflows.ask(model, task, n=n), task, out_path, json_)


selection_options = options.OptionSection(
    "Options",
    options.define_option("--share P", parse=click.FloatRange(0, 1)),
    options.define_option("-n,--number N", parse=click.IntRange(0)),
    options.define_option("--class CLASS", field="label"),
    options.define_option("--draw SEED", parse=int, field="seed"),
    options.define_option("--why", field="explains"),
    record="SelectionOptions",
)


@options.sectioned_command(
    "select",
    short_help="Keep the rows that are most like what is wanted.",
    epilog="Example: priory select wiki.priory crawl.jsonl.zst --like wiki.jsonl --share 0.1 -o kept.jsonl",
)
@options.model_argument
@options.files_argument
@options.add_option(
    "--like FILE...", "Texts such as those to keep: MODEL is made of them and of FILEs.", options.FILE_PATH_TYPE
)
@options.add_option("--text COLUMN", "With --like: the column of the texts, by default text.", lambda name: (name,))
@selection_options
@options.output_options
@options.reading_options
def select_command(
    model: str, paths: tuple[str, ...], like: tuple[str, ...], out: str | None, force: bool, json_: bool, **given: Any
) -> None:
    """Keep the rows of FILEs that MODEL finds most probable of a class, in their order, with their score.

    MODEL was trained on labels; or, with --like, it is made now: it learns what distinguishes the wanted texts from
    FILEs, by words and pairs of words, and is written for later runs. FILEs are read twice and may be larger than
    memory. The score is the log odds of the class in decibans; of a MODEL made with --like, per 1,000 bytes of text.

    A collection can grow and shrink: priory learn MODEL more.jsonl --label wanted, priory forget MODEL part.jsonl
    --label rest.
    """
    out_path = options.check_output_path(out, (model, *paths, *like), force)
    selection = workflows.SelectionOptions(**selection_options.pop(given))
    if like and options.check_output_path(model, (*paths, *like), force) is None:
        raise click.UsageError("--like makes a model file; give its name")
    with options.open_task(paths, given, more_paths=like) as task:
        if like:
            with task.callbacks.activity("learning what is wanted"):
                priory.save(workflows.learn_contrast(like, task), model)
        rows = workflows.select(model, replace(task, columns=workflows.ColumnOptions()), options=selection)
        _write_rows(rows, task, out_path, json_)


@options.sectioned_command(
    "explain",
    short_help="Show the evidence behind a prediction.",
    epilog='Example: priory explain mail.priory "Free entry, text WIN now"',
)
@options.model_argument
@click.argument("values", nargs=-1, metavar="[TEXT...|COLUMN=VALUE...]")
@options.add_option("--from FILE", "Explain rows of this file.", options.FILE_PATH_TYPE, field="path")
@options.add_option(
    "--row N...",
    "Which row of the file, counted from 1; may be repeated. By default the first.",
    click.IntRange(1),
    field="numbers",
)
@options.add_option(
    "--unit UNIT",
    f"What evidence is shown in: {', '.join(EVIDENCE_UNITS)}. By default decibans.",
    click.Choice(EVIDENCE_UNITS),
    default="decibans",
)
@options.add_option("--what-if", "Which single cells of the row, changed to what, would change the answer.")
@options.add_option("--overall", "What matters over all labelled rows of the file: each column left out in turn.")
@options.add_option("--class CLASS", "With --overall: for the rows of this class.", field="label")
@options.json_option
@options.reading_options
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
    average row       of a table: the mean answer to learned rows, from which each
                      column moves the answer
    age x income      what two columns do together, beyond what each does alone
    missing cells     what the gaps of the row leave open
    limit of 50 rows  what is taken back: 50 rows make nobody surer than 51 to 1
    (absent tokens)   the words that the text does not contain

    --overall shows what matters in a whole file: by how many bits a row the truth is less probable if a column is left
    out, and the strongest evidence for each class.
    """
    if bool(values) == bool(path):
        raise click.UsageError("give one of these to explain: texts, COLUMN=VALUE pairs, or --from FILE")
    if (what_if or overall) and not path:
        raise click.UsageError("--what-if and --overall are about rows of a file; use --from FILE")
    options.check_exclusive("--what-if", "--overall")
    if label is not None and not overall:
        raise click.UsageError("--class is for a whole file; use it with --overall")

    if path is None:
        ledgers = workflows.explain_values(model, values, key=options.get_required_key())
    else:
        with options.open_task((path,), given) as task:
            if overall:
                return _explain_file(model, task, label, json_)
            if what_if:
                return _explain_changes(model, task, numbers or (1,), json_)
            ledgers = workflows.explain(model, task, numbers or (1,))
    if json_:
        print_json([ledger.to_dict() for ledger in ledgers])
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
        print_heading(f"what is lost without a column, in bits a row{whose}")
        rows = [("column", "bits", "95 % interval")]
        rows += [(one.name, f"{one.bits.value:.3f}", f"{one.bits.low:.3f} to {one.bits.high:.3f}") for one in columns]
        print_lines("\n".join(align_text_columns(rows)))
    print_evidence(evidence)
