"""Model files: parameters and learned statistics in one file that contains no code.

save(model, path)              write a model; the file is never half-written
load(path)                     the same model, bit for bit: it can learn, forget and merge as before
with updating(path) as file:   load, change ``file.model`` and save; a second process waits meanwhile
inspect(path)                  describe a file and what it would reveal, without building the model
sign(path, key)                add a signature, which ``load(path, key=...)`` requires
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from priory.errors import KindError, MissingDependencyError, ModelFileError, ModelTooLargeError
from priory.storage.container import ArraySections, FileContents, pack_model_file
from priory.storage.file_locks import LOCK_TIMEOUT_SECONDS, lock_file
from priory.storage.saved_files import open_regular_file, replace_file
from priory.storage.signatures import Ed25519Key, check_signature, load_signature_key
from priory.storage.validation import NOTES_ATTRIBUTE, Estimator, check_model, find_estimator, list_estimators
from priory.storage.value_trees import ModelDecoder, encode_value

if TYPE_CHECKING:
    from priory.storage.inspection import Inspection

__all__ = ["Updated", "inspect", "load", "save", "sign", "updating"]

ReadResultT = TypeVar("ReadResultT")
PathLike = str | os.PathLike[str]
MAX_FAULT_LENGTH = 300  # characters


def save(
    model: Estimator,
    path: PathLike,
    *,
    notes: Mapping[str, bytes] | None = None,
    key: PathLike | None = None,
    wait: float = LOCK_TIMEOUT_SECONDS,
) -> None:
    """Save a model to a file atomically: readers see either the old file or the complete new one.

    Parameters
    ----------
    model : estimator
        A classifier or regression of priory, fitted or not.
    path : str or path
        The file to write; an existing file is replaced.
    notes : dict of str to bytes, optional
        Named bytes to store with the model, such as a model card. The default is the notes that were loaded with it.
    key : str or path, optional
        A PEM file with a private Ed25519 key, which signs the model file.
    wait : float
        Seconds to wait while another process changes the file, before `priory.errors.FileBusyError` is raised.
    """
    place, signing = Path(path), _load_optional_key(key)
    with lock_file(place, wait):
        _write_model(model, place, notes, signing)


def load(path: PathLike, *, key: PathLike | None = None) -> Any:
    """Load a model, after verifying every checksum and the consistency of its contents.

    Parameters
    ----------
    path : str or path
        A file that `save` wrote.
    key : str or path, optional
        A PEM file with an Ed25519 key. The model file must be signed with it (or its private half).

    Returns
    -------
    model : estimator
        The model; its notes, if any, are in its attribute ``notes``.
    """
    return _read_file(Path(path), _load_optional_key(key), _build_model)


def inspect(path: PathLike, *, key: PathLike | None = None) -> Inspection:
    """Describe what a file contains and would reveal, without building the model."""
    from priory.storage.inspection import inspect_contents  # loading and saving do without it

    return _read_file(Path(path), _load_optional_key(key), lambda contents: inspect_contents(Path(path), contents))


def sign(path: PathLike, key: PathLike, *, wait: float = LOCK_TIMEOUT_SECONDS) -> None:
    """Sign a model file with a private Ed25519 key; the model is loaded and checked first."""
    place, signing = Path(path), _load_optional_key(key)
    with lock_file(place, wait):
        _write_model(load(place), place, None, signing)


def _load_optional_key(path: PathLike | None) -> Ed25519Key | None:
    return None if path is None else load_signature_key(path)


def _read_file(path: Path, key: Ed25519Key | None, build: Callable[[FileContents], ReadResultT]) -> ReadResultT:
    """Open and verify a file and return ``build(contents)``; any error while building becomes a ModelFileError."""
    try:
        # the order matters: header and manifest, then the signature, and only then the contents
        with open_regular_file(path) as file:
            contents = FileContents(file)
        if key is not None:
            check_signature(key, contents.digest, contents.signature)
        contents.verify_checksums()
        return build(contents)
    except (ModelFileError, ModelTooLargeError) as error:
        raise type(error)(f"{path}: {_shorten_message(error)}") from None
    # these are not the file's fault
    except (OSError, MissingDependencyError, MemoryError):
        raise
    except Exception as error:
        fault = f"{type(error).__name__}, {_shorten_message(error)}"
        raise ModelFileError(f"{path}: a part of it makes no sense: {fault}") from error


def _shorten_message(error: Exception) -> str:
    """Return the message on one line, truncated: a hostile file can make it very long."""
    message = " ".join(str(error).split())
    return message if len(message) <= MAX_FAULT_LENGTH else f"{message[:MAX_FAULT_LENGTH]}..."


def _build_model(contents: FileContents) -> Any:
    model = ModelDecoder(contents).decode_node(contents.tree)
    if find_estimator(type(model)) is None:
        raise ModelFileError(f"it holds a {type(model).__name__}, which is not a model.")
    contents.check_all_read()
    if contents.parts:
        setattr(model, NOTES_ATTRIBUTE, contents.parts)
    return model


def drop_note(model: object, name: str) -> None:
    """Drop a note, so that it is not saved with the model."""
    notes = vars(model).get(NOTES_ATTRIBUTE, {})
    if name in notes:
        setattr(model, NOTES_ATTRIBUTE, {other: part for other, part in notes.items() if other != name})


@dataclass
class Updated:
    """The model inside of an `updating` block; ``model`` is None if the file does not exist yet."""

    model: Any


@contextmanager
def updating(path: PathLike, *, key: PathLike | None = None, wait: float = LOCK_TIMEOUT_SECONDS) -> Iterator[Updated]:
    """Load a model, and save it again at the end of the ``with`` block unless the block raises an error.

    The file is locked meanwhile: other processes wait for up to ``wait`` seconds and then raise
    `priory.errors.FileBusyError`. With a ``key`` the file must be signed, and is signed again; a public key cannot
    sign, so the changed file is then unsigned.
    """
    place, known = Path(path), _load_optional_key(key)
    with lock_file(place, wait):
        file = Updated(_read_file(place, known, _build_model) if place.exists() else None)
        yield file
        if file.model is not None:
            _write_model(file.model, place, None, known if known and known.can_sign else None)


def _write_model(model: Estimator, path: Path, notes: Mapping[str, bytes] | None, key: Ed25519Key | None) -> None:
    if find_estimator(type(model)) is None:
        raise KindError(
            f"cannot save a {type(model).__name__}; a model file holds one of {', '.join(list_estimators())}."
        )
    # notes are kept when a loaded model is saved again
    parts = vars(model).get(NOTES_ATTRIBUTE, {}) if notes is None else notes
    wrong = [name for name, part in parts.items() if not isinstance(part, bytes)]
    if wrong:
        raise KindError(f"the note {wrong[0]!r} is a {type(parts[wrong[0]]).__name__}; notes are bytes.")
    if hasattr(model, "with_corrections"):
        model = model.with_corrections()
    sections = ArraySections()
    tree = encode_value(model, sections, type(model).__name__)
    check_model(model)  # the same check as in load: every file that is written can be read
    replace_file(path, pack_model_file(tree, sections, parts, key))
