"""Receipts: signed statements that rows have left a model, in a chain that begins when the model is trained.

A receipt holds salted commitments (SHA-256) to the record before, the record after and each row that was forgotten. The
salts and the rows are its *opening*, which goes to the person and is not kept. Whoever has the opening and the record
of the model file can check by adding that the record after + the rows = the record before (`receipt_verifier`).

    book = ReceiptBook("private.pem", "model.salts")
    first = book.issue_state(model)                     # when it is trained, and after it has learned
    issued = book.forget(model, X, y, reason="request 7")
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from priory.errors import DataError, StaleModelError
from priory.estimators.label_encoding import encode_labels
from priory.learning.record_export import RECORD_SPEC, JsonObject, export_record, export_rows
from priory.storage import PathLike
from priory.storage import receipt_verifier as verifier
from priory.storage.saved_files import replace_file
from priory.storage.signatures import Ed25519Key, load_signature_key
from priory.storage.validation import NOTES_ATTRIBUTE

RECEIPTS_NOTE = "receipts"  # the name of the note in a model file
EMPTY_RECORD: JsonObject = {"spec": RECORD_SPEC, "columns": {}, "declared": [], "n": {}, "sums": {}, "kept": None}


@dataclass(frozen=True)
class Issued:
    """A receipt, which may be published, and its opening, which is for the person alone."""

    receipt: JsonObject
    opening: JsonObject


def read_chain(model: object) -> JsonObject | None:
    """The state of a model's receipts: model id, counter, hash and commitment of the last one, and their dates."""
    notes: Mapping[str, bytes] = vars(model).get(NOTES_ATTRIBUTE, {})
    return json.loads(notes[RECEIPTS_NOTE]) if RECEIPTS_NOTE in notes else None


@dataclass(frozen=True)
class ReceiptBook:
    """Issues receipts with a private key; the salt of the last record is in a secret file beside the model.

    Parameters
    ----------
    key : path
        A private Ed25519 key in PEM format.
    salts : path
        The file with the salt of the last receipt; it is created, and only its owner can read it.
    """

    key: PathLike
    salts: PathLike

    def issue_state(self, model: Any, reason: str = "") -> Issued:
        """Issue a receipt that states the record of a model: the first one, or one after it has learned."""
        return self._issue(model, export_model(model), reason)

    def forget(
        self, model: Any, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None, *, reason: str = ""
    ) -> Issued:
        """Forget rows of a model, as its method does, and issue a receipt; if either fails, the model is as it was."""
        before, chain = export_model(model), read_chain(model)
        if chain is None:
            raise StaleModelError("the model has no receipt yet; issue the first one with `priory receipt`.")
        salt = self._read_salt(chain)
        if salt is None:
            raise DataError(
                f"{os.fspath(self.salts)}: does not have the salt of receipt {chain['counter']}; give the file that "
                "was written with it, or issue a new receipt with `priory receipt`."
            )
        if verifier.commit("record", salt, before) != chain["after"]:
            raise StaleModelError(
                f"the model has changed since receipt {chain['counter']}; issue one for what it has learned with "
                "`priory receipt`."
            )
        state = model.learned_
        rows = export_rows(state, X, partial(encode_labels, y), sample_weight)
        model.forget(X, y, sample_weight)
        try:
            after = export_model(model)
            _check_sum(after, rows, before)
            return self._issue(model, after, reason, before, salt, rows)
        except BaseException:
            model.adopt(state, finish=False)
            raise

    def is_current(self, model: Any) -> bool:
        """Whether the last receipt states what the model has learned, and its salt is known."""
        chain = read_chain(model)
        salt = None if chain is None else self._read_salt(chain)
        return bool(chain and salt and verifier.commit("record", salt, export_model(model)) == chain["after"])

    def _issue(
        self,
        model: Any,
        after: JsonObject,
        reason: str,
        before: JsonObject | None = None,
        salt: str | None = None,
        rows: list[JsonObject] | None = None,
    ) -> Issued:
        key, chain = self._load_key(), read_chain(model)
        known = chain or {"model": secrets.token_hex(16), "counter": -1, "last": None, "after": None, "issued": []}
        new_salt, row_salts = secrets.token_hex(32), [secrets.token_hex(32) for _ in rows or ()]
        receipt: JsonObject = {
            "spec": verifier.RECEIPT_SPEC,
            "model": known["model"],
            "counter": known["counter"] + 1,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "previous": known["last"],
            "before": None if before is None else known["after"],
            "after": verifier.commit("record", new_salt, after),
            "rows": [verifier.commit("row", s, row) for s, row in zip(row_salts, rows or (), strict=True)],
            "reason": reason,
        }
        receipt["signature"] = key.sign_message(verifier.signed_bytes(receipt)).hex()
        self._write_salt(receipt["counter"], new_salt)
        continue_chain(model, receipt)
        salts = {"before": salt, "after": new_salt, "rows": row_salts}
        return Issued(receipt, {"frame": _get_frame(before or after), "rows": rows or [], "salts": salts})

    def _load_key(self) -> Ed25519Key:
        key = load_signature_key(self.key)
        if not key.can_sign:
            raise DataError(f"{os.fspath(self.key)}: receipts are signed with a private Ed25519 key; give one.")
        return key

    def _read_salt(self, chain: JsonObject) -> str | None:
        try:
            salts: JsonObject = json.loads(Path(self.salts).read_bytes())
        except (OSError, ValueError):
            return None
        return salts.get(str(chain["counter"]))

    def _write_salt(self, counter: int, salt: str) -> None:
        """Keep the new salt alone: with the one before it, guesses about the rows that have left could be tested."""
        path = Path(self.salts)
        path.touch(mode=0o600)
        replace_file(path, [json.dumps({str(counter): salt}).encode()])


def continue_chain(model: Any, receipt: JsonObject) -> None:
    """Note in a model that this is its last receipt."""
    known = [dated for dated in (read_chain(model) or {"issued": []})["issued"] if dated[0] < receipt["counter"]]
    chain = {
        "model": receipt["model"],
        "counter": receipt["counter"],
        "last": hashlib.sha256(verifier.encode_canonically(receipt)).hexdigest(),
        "after": receipt["after"],
        "issued": [*known, [receipt["counter"], receipt["time"], len(receipt["rows"])]],
    }
    notes = vars(model).get(NOTES_ATTRIBUTE, {}) | {RECEIPTS_NOTE: verifier.encode_canonically(chain)}
    model.__dict__[NOTES_ATTRIBUTE] = notes


def export_model(model: Any) -> JsonObject:
    """Export the record of a model; a model that knows no rows has an empty one."""
    return export_record(model.learned_) if hasattr(model, "statistics_") else EMPTY_RECORD


def _get_frame(record: JsonObject) -> JsonObject:
    """The part of a record that rows do not add to: columns, declared classes, and the limits of the sample."""
    kept = record["kept"]
    limits = None if kept is None else {"memory": kept["memory"], "limit": kept["limit"], "rows": {}}
    return {"columns": record["columns"], "declared": record["declared"], "kept": limits}


def _check_sum(after: JsonObject, rows: list[JsonObject], before: JsonObject) -> None:
    """Raise DataError unless a verifier will find that the record after + the rows = the record before."""
    total = verifier.add_rows(after, _get_frame(before), rows)
    if verifier.encode_canonically(total) != verifier.encode_canonically(before):
        raise DataError(
            "a receipt for these rows could not be checked by adding: they have decayed, or have weights that are no "
            "sums of powers of two; the model is as it was."
        )


def verify_with_model(receipt: JsonObject, pem: bytes, model: Any = None, **given: Any) -> str:
    """Verify a receipt, as `receipt_verifier.verify_receipt` does, with the record of a model."""
    record = None if model is None else export_model(model)
    return verifier.verify_receipt(receipt, pem, record=record, **given)
