"""The model file: what was declared and what was learned, in one file, without code.

save(model, path)              the model as a file: whole, or not at all
load(path)                     the model again, bit for bit: it goes on learning, forgets, merges
with updating(path) as file:   load, change ``file.model``, save; two at once wait for each other
inspect(path)                  what a file holds and would reveal, without building the model
sign(path, key)                the same model, and a signature that ``load(path, key=...)`` demands
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from priory.errors import KindError, MissingDependencyError, ModelFileError, ModelTooLargeError
from priory.storage.container import ArraySections, FileContents, pack_model_file
from priory.storage.files import LOCK_TIMEOUT_SECONDS, lock_file, open_regular_file, replace_file
from priory.storage.fitted_state import check_model
from priory.storage.inspection import Inspection, inspect_contents
from priory.storage.registry import ESTIMATOR_PATHS, NOTES_ATTRIBUTE, find_stored_name
from priory.storage.signatures import SignatureKey, check_signature, load_signature_key
from priory.storage.value_encoding import ModelDecoder, build_estimator, build_record, encode_value

__all__ = ["Inspection", "Updated", "inspect", "load", "save", "sign", "updating"]

ReadResultT = TypeVar("ReadResultT")


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, bytes] | None = None,
    key: str | os.PathLike[str] | None = None,
    wait: float = LOCK_TIMEOUT_SECONDS,
) -> None:
    """Write a model to a file, which is the old one or the new one at every moment, whatever happens.

    ``notes`` are named bytes that go with it, such as a model card; None leaves those that it was loaded with. ``key``
    is a file with a secret, or with a private Ed25519 key, that signs the file.
    """
    place, signing = Path(path), _load_optional_key(key)
    with lock_file(place, wait):
        _write_model(model, place, notes, signing)


def load(path: str | os.PathLike[str], *, mapped: bool = False, key: str | os.PathLike[str] | None = None) -> Any:
    """The model of a file, if every checksum agrees and everything in it makes sense.

    ``mapped`` leaves in the file what lies there as it is used: many processes then share the memory, and nobody may
    write into the file (`save` never does: it puts a new one in its place). With a ``key`` the file must have been
    signed by it, or by the private half of this public key. Notes that came with the model are its attribute ``notes``.
    """
    return _read_file(Path(path), mapped, _load_optional_key(key), _build_model)


def inspect(path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None) -> Inspection:
    """What a file holds and would reveal; the model is not built."""
    return _read_file(
        Path(path), True, _load_optional_key(key), lambda contents: inspect_contents(Path(path), contents)
    )


def sign(path: str | os.PathLike[str], key: str | os.PathLike[str], *, wait: float = LOCK_TIMEOUT_SECONDS) -> None:
    """Sign a model file with a secret, or with a private Ed25519 key; it must be one that can be loaded."""
    place, signing = Path(path), _load_optional_key(key)
    with lock_file(place, wait):
        _write_model(load(place), place, None, signing)


def _load_optional_key(path: str | os.PathLike[str] | None) -> SignatureKey | None:
    return None if path is None else load_signature_key(path)


def _read_file(
    path: Path, mapped: bool, key: SignatureKey | None, build: Callable[[FileContents], ReadResultT]
) -> ReadResultT:
    """What is ``made`` of the file; whatever goes wrong in making it, the file is to blame."""
    try:
        with open_regular_file(path) as file:
            contents = FileContents(file, mapped)
        if key is not None:
            check_signature(key, contents.sign_digest, contents.digest, contents.signature)
        with contents.verify_checksums():
            return build(contents)
    except (ModelFileError, ModelTooLargeError) as error:
        raise type(error)(f"{path}: {error}") from None
    except (OSError, MissingDependencyError, MemoryError):
        raise
    except Exception as error:
        what = " ".join(str(error).split())
        raise ModelFileError(f"{path}: a part of it makes no sense: {type(error).__name__}, {what}") from error


def _build_model(contents: FileContents) -> Any:
    model = ModelDecoder(contents, build_record, build_estimator).decode_node(contents.tree)
    if find_stored_name(type(model)) not in ESTIMATOR_PATHS:
        raise ModelFileError(f"it holds a {type(model).__name__}, which is no model.")
    check_model(model)
    contents.check_all_read()
    if contents.parts:
        setattr(model, NOTES_ATTRIBUTE, contents.parts)
    return model


@dataclass
class Updated:
    """A model file while it is being changed; ``model`` is None where there is no file yet."""

    model: Any


@contextmanager
def updating(
    path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None, wait: float = LOCK_TIMEOUT_SECONDS
) -> Iterator[Updated]:
    """Change a model file: nobody else does meanwhile, and it is saved only if all went well.

    Others wait, up to ``wait`` seconds, then raise `priory.errors.Busy`. With a ``key`` the file must be signed, and is
    signed again; a public key cannot do that: what was changed is then no longer signed.
    """
    place, known = Path(path), _load_optional_key(key)
    with lock_file(place, wait):
        file = Updated(_read_file(place, False, known, _build_model) if place.exists() else None)
        yield file
        if file.model is not None:
            _write_model(file.model, place, None, known if known and known.can_sign else None)


def _write_model(model: Any, path: Path, notes: Mapping[str, bytes] | None, key: SignatureKey | None) -> None:
    if find_stored_name(type(model)) not in ESTIMATOR_PATHS:
        raise KindError(
            f"cannot save a {type(model).__name__}; a model file holds one of {', '.join(ESTIMATOR_PATHS)}."
        )
    parts = vars(model).get(NOTES_ATTRIBUTE, {}) if notes is None else notes
    wrong = [name for name, part in parts.items() if not isinstance(part, bytes)]
    if wrong:
        raise KindError(f"the note {wrong[0]!r} is a {type(parts[wrong[0]]).__name__}; notes are bytes.")
    check_model(model)
    sections = ArraySections()
    tree = encode_value(model, sections, type(model).__name__)
    replace_file(path, pack_model_file(tree, sections, parts, key))
