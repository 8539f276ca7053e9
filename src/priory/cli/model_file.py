"""Commands on model files: ``learn``, ``forget`` and ``merge``, ``inspect`` (contents) and ``sign``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import click

import priory
from priory import workflows
from priory.cli import options
from priory.cli.terminal import print_json, print_lines, print_update


@options.sectioned_command(
    "learn", short_help="Learn more rows into a model.", epilog="Example: priory learn mail.priory today.csv"
)
@options.model_argument
@options.files_argument
@options.update_options
@options.json_option
@options.column_options
@options.reading_options
def learn_command(model: str, paths: tuple[str, ...], json_: bool, **given: Any) -> None:
    """Learn the rows of FILEs in addition to what MODEL has learned: all of them, or none if there is an error.

    If MODEL does not exist, it is created as priory train --plain --target COLUMN would. Several processes may learn
    into one MODEL at the same time: each waits for its turn, and nothing is lost.
    """
    update = options.update_options.pop(given)
    with options.open_task(paths, given) as task:
        result = workflows.learn(model, task, **update)
        if update["unlabelled"]:
            task.callbacks.notify(result.model.unlabelled_)
    print_update("learned", model, result, json_)


@options.sectioned_command(
    "forget",
    short_help="Unlearn rows, exactly.",
    epilog="Example: priory forget mail.priory mail.csv --where sender=ann",
)
@options.model_argument
@options.files_argument
@options.update_options
@options.add_option(
    "--where COLUMN=TEXT...",
    "Only the rows of FILEs with this text in this column, which need not be a column of MODEL; may be repeated.",
    partial(options.split_assignments, usage="COLUMN=TEXT"),
)
@options.json_option
@options.force_option
@options.receipt_options
@options.column_options
@options.reading_options
def forget_command(
    model: str, paths: tuple[str, ...], json_: bool, where: dict[str, str], force: bool, **given: Any
) -> None:
    """Unlearn the rows of FILEs: MODEL becomes exactly what it would be if it had never learned them.

    All rows are forgotten, or none if one of them was never learned. With --sign-key and --receipt a receipt is written
    that others can check (priory verify).
    """
    files, update = options.pop_receipt_files(given, force), options.update_options.pop(given)
    with options.open_task(paths, given) as task:
        chosen = replace(task, where=dict(where))
        if workflows.is_database(paths[0]):
            result = workflows.forget_table(model, chosen, receipt=files)
        else:
            result = workflows.forget(model, chosen, receipt=files, **update)
    print_update("forgotten", model, result, json_)


@options.sectioned_command(
    "merge",
    short_help="Combine models into one.",
    epilog="Example: priory merge monday.priory tuesday.priory -o both.priory",
)
@click.argument("models", nargs=-1, required=True, type=options.FILE_PATH_TYPE, metavar="MODEL...")
@options.add_option("-o,--out MODEL", "The merged model.", options.FILE_PATH_TYPE, required=True)
@options.refresh_option
@options.force_option
@options.json_option
@options.column_options
@options.reading_options
def merge_command(
    models: tuple[str, ...], out: str, refresh_from: tuple[str, ...], force: bool, json_: bool, **given: Any
) -> None:
    """Combine MODELs into one model, exactly as if it had learned the rows of all of them."""
    out_path = options.check_output_path(out, models, force)
    if out_path is None or len(models) < 2:
        raise click.UsageError("give two models or more, and a file for the merged model with -o")
    with options.open_task(refresh_from, given) as task:
        merged = workflows.merge(models, refresh_from=task)
        priory.save(merged, out_path)
    total = float(merged.class_count_.sum())
    print_json({"model": out_path, "rows": total}) if json_ else click.echo(f"wrote {out_path}: {total:,.0f} rows")


@options.sectioned_command(
    "inspect", short_help="Show what a model file contains.", epilog="Example: priory inspect mail.priory"
)
@options.model_argument
@options.add_option("--tables", "Load the model, and show P(class) and P(value | class).")
@options.add_option(
    "--privacy", "Load the model, and show how well its answers tell which of the rows it keeps were learned."
)
@options.json_option
def inspect_command(model: str, tables: bool, privacy: bool, json_: bool) -> None:
    """Show what MODEL contains, and what it would reveal to anyone who has the file. The model is not loaded."""
    options.check_exclusive("--tables", "--privacy")
    if privacy or tables:
        from priory.workflows.model_files import load_classifier  # what a file contains is shown without it

        loaded = load_classifier(model, options.get_required_key(), several=True)
    if privacy:
        audit = loaded.audit_membership()
        if json_:
            print_json({"model": model, **audit.as_dict()})
        else:
            print_lines(f"{model}: what its answers reveal about {audit.rows:,} kept rows\n{audit}", indent="")
        return
    if tables:
        found_tables = loaded.tables_
        print_json(found_tables.to_dicts()) if json_ else print_lines(str(found_tables), indent="")
        return
    found = workflows.inspect(model, key=options.get_required_key())
    print_json(found.as_dict()) if json_ else print_lines(str(found), indent="")


@options.sectioned_command(
    "sign", short_help="Sign a model file.", epilog="Example: priory sign mail.priory --key private.pem"
)
@options.model_argument
@options.add_option("--key FILE", "A private Ed25519 key in PEM format.", options.FILE_PATH_TYPE, required=True)
@options.json_option
def sign_command(model: str, key: str, json_: bool) -> None:
    """Sign MODEL, so that priory --require-signature KEY accepts it. After a change it has to be signed again.

    \b
    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    priory --require-signature public.pem predict mail.priory new.csv
    """
    workflows.inspect(model, key=options.get_required_key())
    priory.storage.sign(model, key)
    kind = workflows.inspect(model, key=key).signature
    print_json({"model": model, "signature": kind}) if json_ else click.echo(f"signed {model}: {kind}")
