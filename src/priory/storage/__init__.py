"""The model file: what was declared and what was learned, in one file, without code.

save(model, path)              the model as a file: whole, or not at all
load(path)                     the model again, bit for bit: it goes on learning, forgets, merges
with updating(path) as file:   load, change ``file.model``, save; two at once wait for each other
inspect(path)                  what a file holds and would reveal, without building the model
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from priory.errors import BadModel, KindError, Missing, TooLarge
from priory.storage.container import Contents, Sections, packed
from priory.storage.encoding import Decoder, built_estimator, built_record, encoded
from priory.storage.files import WAIT, locked, opened, replaced
from priory.storage.fitted import check_model
from priory.storage.inspection import Inspection, inspected
from priory.storage.registry import ESTIMATORS, name_of

__all__ = ["Inspection", "Updated", "inspect", "load", "save", "updating"]

T = TypeVar("T")


def save(model: Any, path: str | os.PathLike[str], *, wait: float = WAIT) -> None:
    """Write a model to a file, which is the old one or the new one at every moment, whatever happens."""
    place = Path(path)
    with locked(place, wait):
        _write(model, place)


def load(path: str | os.PathLike[str], *, mapped: bool = False) -> Any:
    """The model of a file, if every checksum agrees and everything in it makes sense.

    ``mapped`` leaves the arrays in the file: many processes then share the memory, and nobody may write into the file
    (`save` never does: it puts a new one in its place).
    """
    return _read(Path(path), mapped, _built)


def inspect(path: str | os.PathLike[str]) -> Inspection:
    """What a file holds and would reveal; the model is not built."""
    return _read(Path(path), True, lambda contents: inspected(Path(path), contents))


def _read(place: Path, mapped: bool, made: Callable[[Contents], T]) -> T:
    """What is ``made`` of the file; whatever goes wrong in making it, the file is to blame."""
    try:
        with opened(place) as file:
            contents = Contents(file, mapped)
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
    return model


@dataclass
class Updated:
    """A model file while it is being changed; ``model`` is None where there is no file yet."""

    model: Any


@contextmanager
def updating(path: str | os.PathLike[str], *, wait: float = WAIT) -> Iterator[Updated]:
    """Change a model file: nobody else does meanwhile, and it is saved only if all went well.

    Others wait, up to ``wait`` seconds, then raise `priory.errors.Busy`.
    """
    place = Path(path)
    with locked(place, wait):
        file = Updated(load(place) if place.exists() else None)
        yield file
        if file.model is not None:
            _write(file.model, place)


def _write(model: Any, place: Path) -> None:
    if name_of(type(model)) not in ESTIMATORS:
        raise KindError(f"cannot save a {type(model).__name__}; a model file holds one of {', '.join(ESTIMATORS)}.")
    check_model(model)
    sections = Sections()
    tree = encoded(model, sections, type(model).__name__)
    replaced(place, packed(tree, sections))
