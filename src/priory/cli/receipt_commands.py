"""``priory receipt``, ``verify``, ``record``, ``release`` and ``card``: what a model file proves and reveals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from priory import workflows
from priory.cli import options
from priory.cli.entry_point import format_error_message
from priory.cli.terminal import print_json

EXIT_REFUSED, EXIT_UNCHECKED = 1, 2


@options.sectioned_command(
    "receipt",
    short_help="State what a model has learned in a signed receipt.",
    epilog="Example: priory receipt mail.priory --sign-key private.pem --receipt r0.json",
)
@options.model_argument
@options.receipt_options
@options.force_option
@options.json_option
def receipt_command(model: str, force: bool, json_: bool, **given: Any) -> None:
    """Sign a receipt that states the record of MODEL: the first of a chain, or one after MODEL has learned more.

    priory forget continues the chain. Publish the first receipt before the first request.
    """
    files = options.pop_receipt_files(given, force)
    if files is None:
        raise click.UsageError("give --sign-key and --receipt")
    issued = workflows.issue_receipt(model, files, options.get_required_key())
    found = {"model": model, "receipt": str(files.receipt), "counter": issued.receipt["counter"]}
    print_json(found) if json_ else click.echo(f"wrote {files.receipt}: receipt {found['counter']} of {model}")


document_options = options.OptionSection(
    "Options",
    options.define_option("--opening FILE", "The opening of the receipt.", options.FILE_PATH_TYPE),
    options.define_option("--previous FILE", "The receipt before it.", options.FILE_PATH_TYPE),
    options.define_option("--model MODEL", "The model file that the receipt has left.", options.FILE_PATH_TYPE),
)


@options.sectioned_command(
    "verify",
    short_help="Verify a receipt of forgetting.",
    epilog="Example: priory verify r1.json --key public.pem --opening p7.json --model mail.priory --previous r0.json",
)
@click.argument("receipt", type=options.FILE_PATH_TYPE, metavar="RECEIPT")
@options.add_option("--key FILE", "The public key of the signer (PEM).", options.FILE_PATH_TYPE, required=True)
@document_options
@options.add_option(
    "--rows FILE...",
    "A table of the rows that should have been forgotten; needs --opening and --model.",
    options.FILE_PATH_TYPE,
)
@options.column_options
@options.reading_options
def verify_command(receipt: str, key: str, rows: tuple[str, ...], **given: Any) -> None:
    """Verify RECEIPT, and print one sentence. Exit codes: 0 verified, 1 refused, 2 it cannot be checked."""
    try:
        documents = document_options.pop(given)
        with options.open_task(rows, given) as task:
            found = workflows.verify(receipt, key, rows=task if rows else None, **documents)
        click.echo(f"verified: {found}")
    except workflows.RefusedError as refused:
        click.echo(f"refused: {refused}")
        raise click.exceptions.Exit(EXIT_REFUSED) from None
    except Exception as error:
        click.echo(f"cannot check: {format_error_message(error)}", err=True)
        raise click.exceptions.Exit(EXIT_UNCHECKED) from None


@options.sectioned_command(
    "record",
    short_help="Write the record of a model as JSON.",
    epilog="Example: priory record mail.priory > record.json",
)
@options.model_argument
def record_command(model: str) -> None:
    """Write what MODEL has learned as canonical JSON, which receipt_verifier.py reads: counts, sums and kept rows."""
    click.echo(workflows.export_file(model, options.get_required_key()))


@options.sectioned_command(
    "release",
    short_help="Write a differentially private copy of a model.",
    epilog="Example: priory release people.priory -o public.priory --epsilon 1 --domains domains.json",
)
@options.model_argument
@options.add_option("-o,--out MODEL", "The private copy.", options.FILE_PATH_TYPE, required=True)
@options.add_option("--epsilon E", "The privacy budget; 1 is customary.", click.FLOAT, required=True)
@options.add_option(
    "--domains JSON",
    "Possible labels or bounds [low, high] of each column, and the classes under the name of the target.",
    options.FILE_PATH_TYPE,
    required=True,
)
@options.force_option
@options.json_option
def release_command(model: str, out: str, epsilon: float, domains: str, force: bool, json_: bool) -> None:
    """Write a copy of MODEL with noise on its counts: no row changes its probabilities by more than e^epsilon.

    The copy answers, learns and merges; it keeps no rows and cannot forget. Domains have to come from outside the rows:
    \b
    {"age": [0, 120], "city": ["Ulm", "Bonn"], "bought": ["yes", "no"]}
    """
    out_path = options.require_output_path(out, (model, domains), force, "a model", "public.priory")
    made = workflows.release(model, out_path, epsilon, domains, options.get_required_key())
    total = float(made.class_count_.sum())
    if json_:
        print_json({"model": out_path, "epsilon": epsilon, "rows": total})
    else:
        click.echo(f"wrote {out_path}: a release with epsilon {epsilon:g}, about {total:,.0f} rows")


@options.sectioned_command(
    "card",
    short_help="Write a page about a model file.",
    epilog="Example: priory card mail.priory -o card.html",
)
@options.model_argument
@options.add_option("-o,--out FILE", "A file .md or .html. By default printed.", options.FILE_PATH_TYPE)
@options.force_option
def card_command(model: str, out: str | None, force: bool) -> None:
    """Write a card of MODEL from facts in the file: training rows, scores, what it reveals, what was forgotten."""
    out_path = options.check_output_path(out, (model,), force)
    card = workflows.make_card(model, options.get_required_key())
    if out_path is None:
        click.echo(card.to_markdown(), nl=False)
        return
    page = card.to_html() if out_path.endswith((".html", ".htm")) else card.to_markdown()
    Path(out_path).write_text(page, encoding="utf-8")
    click.echo(f"wrote {out_path}")


export_options = options.OptionSection(
    "Options",
    options.define_option(
        "--dialect",
        "The database that runs the SQL, by default duckdb.",
        click.Choice(["duckdb", "postgres", "sqlite", "bigquery"]),
    ),
    options.define_option("--table NAME", "The table or view that the SQL reads, by default rows."),
    options.define_option("--title TEXT", "The heading of the page."),
)


@options.sectioned_command(
    "export",
    short_help="Make SQL, a page, JavaScript or ONNX of a model.",
    epilog="Example: priory export iris.priory --to sql --dialect duckdb --table flowers -o iris.sql",
)
@options.model_argument
@options.add_option("--to", "What to make.", click.Choice(["sql", "js", "html", "onnx"]), required=True)
@export_options
@options.add_option("--without-rows", "Leave out the training rows that complete rows with gaps.")
@options.add_option("-o,--out FILE", "The file to write. By default printed.", options.FILE_PATH_TYPE)
@options.force_option
def export_command(model: str, to: str, without_rows: bool, out: str | None, force: bool, **given: Any) -> None:
    """Make a query, a page, a script or a graph that answers as MODEL does, corrections included.

    A page works offline in a browser and holds no training row. JavaScript comes with a file .d.ts of its types. What
    cannot be expressed is an error before anything is written.
    """
    out_path = options.check_output_path(out, (model,), force)
    if out_path is None and to == "onnx":
        raise click.UsageError("an ONNX graph is not text; use -o model.onnx")
    chosen = export_options.pop(given)
    made = workflows.export(model, to, with_rows=not without_rows, key=options.get_required_key(), **chosen)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    if out_path is None:
        click.echo(made.files[to].decode(), nl=False)
        return
    for ending, content in made.files.items():
        path = Path(out_path) if ending == to else Path(out_path).with_suffix(f".{ending}")
        path.write_bytes(content)
        click.echo(f"wrote {path} ({len(content):,} bytes)")
