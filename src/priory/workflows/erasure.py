"""What is made from a model file: receipts, private releases, the record as JSON, cards, SQL, pages and graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import priory
from priory.errors import DataError
from priory.estimators.label_encoding import encode_labels
from priory.export.model_card import ModelCard
from priory.learning.record_export import export_rows
from priory.sources.column_types import make_model_rows
from priory.storage import inspect, load, updating
from priory.storage.receipt_verifier import RefusedError, encode_canonically, verify_receipt
from priory.storage.receipts import Issued, ReceiptBook, export_model, read_chain
from priory.storage.saved_files import replace_file
from priory.workflows.model_files import (
    FileTask,
    check_fitted,
    is_regression,
    join_labelled_rows,
    load_classifier,
    read_labelled_rows,
)

if TYPE_CHECKING:
    from priory.workflows.model_files import FileModel, PathLike, TableOrTextClassifier


@dataclass(frozen=True)
class ReceiptFiles:
    """Where a receipt is written, and what it is signed with.

    Parameters
    ----------
    key : path
        A private Ed25519 key (PEM), which signs the receipt.
    receipt : path
        The file of the receipt, which may be published.
    opening : path, optional
        The file of the opening of the receipt, for the person alone; it is not kept.
    reason : str
        A note in the receipt, such as the number of a request.
    """

    key: PathLike
    receipt: PathLike
    opening: PathLike | None = None
    reason: str = ""

    def open_book(self, model_path: PathLike, model: FileModel) -> ReceiptBook:
        """Make the book of a model file, whose salts are beside it."""
        if is_regression(model):
            raise DataError("receipts are for models of classes; this model predicts a number.")
        return ReceiptBook(self.key, f"{os.fspath(model_path)}.salts")

    def issue_state(self, model_path: PathLike, model: FileModel) -> Issued:
        """Issue and write a receipt that states what a model has learned; then save the model, which counts it."""
        return self.write(self.open_book(model_path, model).issue_state(model, self.reason))

    def write(self, issued: Issued) -> Issued:
        """Write a receipt and its opening, before the model file that follows from them."""
        if self.opening is not None:
            replace_file(Path(self.opening), [encode_canonically(issued.opening)])
        replace_file(Path(self.receipt), [json.dumps(issued.receipt, indent=1).encode(), b"\n"])
        return issued


def issue_receipt(model: PathLike, files: ReceiptFiles, key: PathLike | None = None) -> Issued:
    """State the record of a model file in a receipt: the first one, or one after it has learned."""
    with updating(model, key=key) as file:
        if file.model is None:
            raise FileNotFoundError(2, "no such model; train one with priory train", os.fspath(model))
        return files.issue_state(model, load_classifier(file.model, several=True))


def release(
    model: PathLike, out: PathLike, epsilon: float, domains: PathLike, key: PathLike | None = None
) -> TableOrTextClassifier:
    """Write a differentially private copy of a model file; ``domains`` is a JSON file, the target among its columns.

    Parameters
    ----------
    model, out : paths of model files
    epsilon : float
        The privacy budget.
    domains : path
        A JSON object of column to possible labels, or to bounds [low, high]; the classes under the name of the target.
    key : path, optional
        The model must be signed with this key.
    """
    trained = load_classifier(model, key)
    if not isinstance(trained, priory.NaiveBayes):
        raise DataError(f"{os.fspath(model)}: words have no declared domain; only models of tables can be released")
    declared = _read_json(domains)
    target = getattr(trained, "target_", "label")
    if not isinstance(declared.get(target), list):
        raise DataError(f"{os.fspath(domains)}: does not give the classes; add a list of them as {target!r}")
    made = trained.release(epsilon, domains=declared, classes=declared[target])
    priory.save(made, out)
    return made


def make_card(model: PathLike, key: PathLike | None = None) -> ModelCard:
    """A page about a model file, from facts in the file only."""
    loaded = load_classifier(model, key, several=True)
    return ModelCard(os.path.basename(model), loaded, inspect(model, key=key).as_dict(), read_chain(loaded))


@dataclass(frozen=True)
class ExportedModel:
    """Files made from a model, by the ending of their names, and notes for the user."""

    files: dict[str, bytes]
    notes: list[str]


def export(
    model: PathLike | Any,
    to: str,
    *,
    dialect: str = "duckdb",
    table: str = "rows",
    with_rows: bool = True,
    title: str = "",
    key: PathLike | None = None,
) -> ExportedModel:
    """Make a query, a script, a page or a graph that answers as a classifier does.

    Parameters
    ----------
    model : a model file, or a fitted classifier
    to : "sql", "js", "html" or "onnx"
    dialect : "duckdb", "postgres", "sqlite" or "bigquery"
        For "sql".
    table : str
        The table or view that the query reads, for "sql".
    with_rows : bool
        Whether the cells of the training rows that complete rows with gaps are in it. Without them, members read gaps
        as missing. A page never has them.
    title : str
        The heading of a page.
    key : path, optional
        The public key of signed models.
    """
    from priory.export import javascript, onnx, plan_sources, sql

    name = os.path.basename(model) if isinstance(model, str | os.PathLike) else "model"
    loaded: Any = check_fitted(load(model, key=key), model) if isinstance(model, str | os.PathLike) else model
    plan = plan_sources.compile_plan(loaded, with_rows and to != "html")
    writers: dict[str, Callable[[], dict[str, bytes]]] = {
        "sql": lambda: {"sql": sql.write_sql(plan, table, dialect).encode()},
        "js": lambda: {"js": javascript.write_javascript(plan).encode(), "d.ts": javascript.write_types().encode()},
        "html": lambda: {"html": javascript.write_page(plan, title or name).encode()},
        "onnx": lambda: {"onnx": onnx.write_graph(plan).SerializeToString()},
    }
    if to not in writers:
        raise DataError(f"to is {to!r}; use sql, js, html or onnx.")
    return ExportedModel(writers[to](), plan.list_notes())


def export_file(model: PathLike, key: PathLike | None = None) -> bytes:
    """The record of a model file as canonical JSON."""
    return encode_canonically(export_model(load(model, key=key)))


def verify(
    receipt: PathLike,
    public_key: PathLike,
    *,
    opening: PathLike | None = None,
    previous: PathLike | None = None,
    model: PathLike | None = None,
    rows: FileTask | None = None,
) -> str:
    """Return what was verified in a sentence; raises `priory.storage.receipt_verifier.RefusedError` with the reason.

    Parameters
    ----------
    receipt : path
    public_key : path
        The public Ed25519 key of the signer.
    opening : path, optional
        The opening of the receipt.
    previous : path, optional
        The receipt before it.
    model : path, optional
        The model file that the receipt has left.
    rows : FileTask, optional
        The rows that should have been forgotten; they are compared with the opening.
    """
    if (model is not None and opening is None) or (rows is not None and model is None):
        raise DataError(
            "a model is compared with an opening, and rows as a model reads them; give --opening and --model."
        )
    before, shown = (None if path is None else _read_json(path) for path in (previous, opening))
    pem, loaded = Path(public_key).read_bytes(), None if model is None else load(model, key=rows.key if rows else None)
    given = _read_json(receipt), pem, before, shown, loaded and export_model(loaded), rows and _read_rows(loaded, rows)
    try:
        return verify_receipt(*given)
    except RefusedError:
        raise
    except Exception as error:  # the files may hold anything
        raise DataError(f"a receipt, an opening or the key is not what it should be: {error!r}.") from None


def _read_rows(model: Any, task: FileTask) -> list[Any]:
    labelled = task.adapt_to(model)
    table, labels = join_labelled_rows(list(read_labelled_rows(model, task.open(), labelled)))
    return export_rows(model.learned_, make_model_rows(table), partial(encode_labels, labels))


def _read_json(path: PathLike) -> Any:
    try:
        found = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{os.fspath(path)}: is not a JSON object; give the file that was asked for.")
    return found
