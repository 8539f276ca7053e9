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

from priory.errors import BadModel, KindError, Missing, TooLarge
from priory.storage.container import Contents, Sections, packed
from priory.storage.files import WAIT, locked, opened, replaced
from priory.storage.fitted_state import check_model
from priory.storage.inspection import Inspection, inspected
from priory.storage.registry import ESTIMATORS, NOTES, name_of
from priory.storage.signatures import Key, check_signature, key_from
from priory.storage.value_encoding import Decoder, built_estimator, built_record, encoded

__all__ = ["Inspection", "Updated", "inspect", "load", "save", "sign", "updating"]

T = TypeVar("T")


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, bytes] | None = None,
    key: str | os.PathLike[str] | None = None,
    wait: float = WAIT,
) -> None:
    """Write a model to a file, which is the old one or the new one at every moment, whatever happens.

    ``notes`` are named bytes that go with it, such as a model card; None leaves those that it was loaded with. ``key``
    is a file with a secret, or with a private Ed25519 key, that signs the file.
    """
    place, signing = Path(path), _key(key)
    with locked(place, wait):
        _write(model, place, notes, signing)


def load(path: str | os.PathLike[str], *, mapped: bool = False, key: str | os.PathLike[str] | None = None) -> Any:
    """The model of a file, if every checksum agrees and everything in it makes sense.

    ``mapped`` leaves in the file what lies there as it is used: many processes then share the memory, and nobody may
    write into the file (`save` never does: it puts a new one in its place). With a ``key`` the file must have been
    signed by it, or by the private half of this public key. Notes that came with the model are its attribute ``notes``.
    """
    return _read(Path(path), mapped, _key(key), _built)


def inspect(path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None) -> Inspection:
    """What a file holds and would reveal; the model is not built."""
    return _read(Path(path), True, _key(key), lambda contents: inspected(Path(path), contents))


def sign(path: str | os.PathLike[str], key: str | os.PathLike[str], *, wait: float = WAIT) -> None:
    """Sign a model file with a secret, or with a private Ed25519 key; it must be one that can be loaded."""
    place, signing = Path(path), _key(key)
    with locked(place, wait):
        _write(load(place), place, None, signing)


def _key(path: str | os.PathLike[str] | None) -> Key | None:
    return None if path is None else key_from(path)


def _read(place: Path, mapped: bool, key: Key | None, made: Callable[[Contents], T]) -> T:
    """What is ``made`` of the file; whatever goes wrong in making it, the file is to blame."""
    try:
        with opened(place) as file:
            contents = Contents(file, mapped)
        if key is not None:
            check_signature(key, contents.signed, contents.digest, contents.signature)
        with contents.verified():
            return made(contents)
    except (BadModel, TooLarge) as error:
        raise type(error)(f"{place}: {error}") from None
    except (OSError, Missing, MemoryError):
        raise
    except Exception as error:
        what = " ".join(str(error).split())
        raise BadModel(f"{place}: a part of it makes no sense: {type(error).__name__}, {what}") from error


def _built(contents: Contents) -> Any:
    model = Decoder(contents, built_record, built_estimator).decoded(contents.tree)
    if name_of(type(model)) not in ESTIMATORS:
        raise BadModel(f"it holds a {type(model).__name__}, which is no model.")
    check_model(model)
    contents.finish()
    if contents.parts:
        setattr(model, NOTES, contents.parts)
    return model


@dataclass
class Updated:
    """A model file while it is being changed; ``model`` is None where there is no file yet."""

    model: Any


@contextmanager
def updating(
    path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None, wait: float = WAIT
) -> Iterator[Updated]:
    """Change a model file: nobody else does meanwhile, and it is saved only if all went well.

    Others wait, up to ``wait`` seconds, then raise `priory.errors.Busy`. With a ``key`` the file must be signed, and is
    signed again; a public key cannot do that: what was changed is then no longer signed.
    """
    place, known = Path(path), _key(key)
    with locked(place, wait):
        file = Updated(_read(place, False, known, _built) if place.exists() else None)
        yield file
        if file.model is not None:
            _write(file.model, place, None, known if known and known.secret else None)


def _write(model: Any, place: Path, notes: Mapping[str, bytes] | None, key: Key | None) -> None:
    if name_of(type(model)) not in ESTIMATORS:
        raise KindError(f"cannot save a {type(model).__name__}; a model file holds one of {', '.join(ESTIMATORS)}.")
    parts = vars(model).get(NOTES, {}) if notes is None else notes
    wrong = [name for name, part in parts.items() if not isinstance(part, bytes)]
    if wrong:
        raise KindError(f"the note {wrong[0]!r} is a {type(parts[wrong[0]]).__name__}; notes are bytes.")
    check_model(model)
    sections = Sections()
    tree = encoded(model, sections, type(model).__name__)
    replaced(place, packed(tree, sections, parts, key))
