"""Read documents from any iterable of ``str`` or UTF-8 ``bytes``, in batches that are split over the threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from typing import TypeVar, final, overload

import numpy as np
from numpy import ndarray as Array

from priory.core import sharding
from priory.core.input_guard import guard_input, list_arrow_cells
from priory.errors import DataError, KindError
from priory.text.normal_forms import Document, Reader, normalize_text

CHARACTERS_PER_BATCH = 1 << 26  # bounds the memory that a stream takes
CHARACTERS_PER_THREAD = 1 << 17  # minimum for one thread
CONTEXT_DEPENDENT_LETTERS = ("Σ", "İ")  # their lower case depends on neighbours, or has two letters

is_ascii: Callable[[Document], bool] = methodcaller("isascii")
BatchResultT = TypeVar("BatchResultT")


@final
class PackedDocuments(Sequence[bytes]):
    """Documents concatenated in one block of memory, like an Arrow column; the kernel reads them in place.

    >>> texts = PackedDocuments(np.frombuffer(b"win cashlunch", np.uint8), np.array([0, 8, 13]))
    >>> texts[1], len(texts[:1]), list(texts)
    (b'lunch', 1, [b'win cash', b'lunch'])
    """

    def __init__(self, memory: Array, edges: Array) -> None:
        self.memory, self.edges = memory, np.ascontiguousarray(edges, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.edges) - 1

    @overload
    def __getitem__(self, which: int) -> bytes: ...
    @overload
    def __getitem__(self, which: slice) -> PackedDocuments: ...
    def __getitem__(self, which: int | slice) -> PackedDocuments | bytes:
        if isinstance(which, slice):
            start, stop, _ = which.indices(len(self))
            return PackedDocuments(self.memory, self.edges[start : stop + 1])
        start = range(len(self))[which]
        return self.memory[self.edges[start] : self.edges[start + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        text = self.memory.tobytes()
        return (text[a:b] for a, b in pairwise(self.edges.tolist()))

    @property
    def text(self) -> Array:
        """The bytes of all documents."""
        return self.memory[self.edges[0] : self.edges[-1]]


DocumentBatch = list[Document] | PackedDocuments


def check_documents(X: object) -> DocumentBatch:
    """Return the documents as a list, with paths replaced by the contents of their files."""
    if isinstance(X, PackedDocuments):
        return X
    if isinstance(X, (str, bytes, Path, Mapping)) or not isinstance(X, Iterable):
        raise KindError(f"X is a {type(X).__name__}; give a list of texts: [text].")
    if hasattr(X, "to_pylist"):
        documents = list_arrow_cells(X, "document {}".format)
    else:
        with guard_input(X):
            documents = list(X)
    kinds = set(map(type, documents))
    if any(not issubclass(kind, str | bytes | Path) for kind in kinds):
        number = next(i for i, document in enumerate(documents) if not isinstance(document, str | bytes | Path))
        raise make_type_error(documents[number], number)
    if not any(issubclass(kind, Path) for kind in kinds):
        return documents
    return [document.read_bytes() if isinstance(document, Path) else document for document in documents]


def make_type_error(document: object, number: int) -> KindError:
    """Return the error for a document that is not a text."""
    return KindError(f"document {number} is {type(document).__name__}; give str or UTF-8 bytes.")


def count_code_points(documents: DocumentBatch) -> Array:
    """Number of code points of each document, (documents,), the same for ``str`` and UTF-8 ``bytes``."""
    if isinstance(documents, PackedDocuments):
        # bytes of the form 10xxxxxx continue a character; every other byte begins one
        begun = np.concatenate([[0], np.cumsum((documents.text & 0xC0) != 0x80)])
        return np.diff(begun[documents.edges - documents.edges[0]])
    plain = (len(d) if isinstance(d, str) or d.isascii() else len(d.decode("utf-8", "replace")) for d in documents)
    return np.fromiter(plain, np.int64, len(documents))


def find_nonempty_documents(documents: DocumentBatch) -> Array:
    """Whether each document has any characters, (documents,)."""
    if isinstance(documents, PackedDocuments):
        return np.diff(documents.edges) > 0
    return np.fromiter(map(bool, documents), bool, len(documents))


def drop_empty_documents(documents: DocumentBatch) -> DocumentBatch:
    """Drop documents without characters."""
    if isinstance(documents, PackedDocuments):  # an empty document has equal edges
        return PackedDocuments(documents.memory, np.unique(documents.edges))
    return [document for document in documents if document]


def iter_document_batches(
    documents: Iterable[Document], lowercase: bool, reader: Reader = "text"
) -> Iterator[tuple[int, DocumentBatch]]:
    """Yield batches of prepared documents, each with the number of its first document."""
    if isinstance(documents, str | bytes):
        raise KindError(f"documents is one {type(documents).__name__}; give a list of documents: [text].")
    start = 0
    for batch in (
        [documents]
        if isinstance(documents, list | PackedDocuments) and len(documents)
        else _iter_stream_batches(documents)
    ):
        yield start, prepare_batch(read_documents(batch, reader), start, lowercase)
        start += len(batch)


def read_documents(documents: DocumentBatch, reader: Reader) -> DocumentBatch:
    """Return texts as they are, or read each document as a message; one that was read before stays as it is."""
    if reader == "text":
        return documents
    from priory.text.mail import read_messages  # texts do without it

    return read_messages(list(documents), reader)


def _iter_stream_batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document) if isinstance(document, str | bytes) else 0
        if size >= CHARACTERS_PER_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def is_ascii_batch(batch: DocumentBatch) -> bool:
    return bool(batch.text.max(initial=0) < 0x80) if isinstance(batch, PackedDocuments) else all(map(is_ascii, batch))


def prepare_batch(batch: DocumentBatch, start: int, lowercase: bool) -> DocumentBatch:
    """Compose the letters of non-ASCII documents, and lower-case those that the kernel cannot lower-case itself."""
    if isinstance(batch, PackedDocuments):
        if all(_is_prepared(batch[i], lowercase) for i in _find_non_ascii(batch)):
            return batch
        batch = list(batch)
    texts = set(map(type, batch)) <= {str, bytes}
    # most documents are ASCII, which needs no preparation; a batch with other types is checked one by one
    odd = [i for i, plain in enumerate(map(is_ascii, batch)) if not plain] if texts else range(len(batch))
    if not odd:
        return batch
    ready = list(batch)
    for i in odd:
        ready[i] = prepare_document(batch[i], start + i, lowercase)
    return ready


def _find_non_ascii(batch: PackedDocuments) -> list[int]:
    """The numbers of the documents that are not ASCII."""
    if is_ascii_batch(batch):
        return []
    # (documents with any bytes,): where each begins; an empty one would stand for the byte after it
    begun = np.flatnonzero(np.diff(batch.edges))
    return begun[np.logical_or.reduceat(batch.text >= 0x80, batch.edges[begun] - batch.edges[0])].tolist()


def _is_prepared(text: bytes, lowercase: bool) -> bool:
    """Whether preparing UTF-8 changes nothing; invalid UTF-8 is left to the kernel, which locates it."""
    try:
        decoded = text.decode()
    except UnicodeError:
        return True
    return _prepare_text(decoded, lowercase) is decoded


def prepare_document(document: Document, number: int, lowercase: bool) -> Document:
    """Compose the letters of a document, and lower-case it if that depends on neighbouring letters."""
    if not isinstance(document, str | bytes):
        raise make_type_error(document, number)
    if document.isascii():
        return document
    try:
        text = document if isinstance(document, str) else document.decode()
    except UnicodeError as error:
        raise make_decoding_error(document, number) from error
    prepared = _prepare_text(text, lowercase)
    return document if prepared is text else prepared


def _prepare_text(text: str, lowercase: bool) -> str:
    composed = normalize_text(text)
    if lowercase and any(letter in composed for letter in CONTEXT_DEPENDENT_LETTERS):
        return composed.lower()
    return composed


def map_batch(
    batch: DocumentBatch,
    start: int,
    function: Callable[[int, DocumentBatch, slice], BatchResultT],
    max_threads: int | None = None,
) -> list[BatchResultT]:
    """Call ``function(shard, documents, rows)`` for each shard of the batch, on separate threads; results in order."""
    edges = split_batch(batch, max_threads or sharding.choose_threads())
    parts = [(k, batch[a:b], slice(start + a, start + b)) for k, (a, b) in enumerate(pairwise(edges))]

    def run(part: tuple[int, DocumentBatch, slice]) -> BatchResultT:
        with locate_decoding_errors(part[1], part[2].start):
            return function(*part)

    return list(sharding.map_threads(run, parts))


def split_batch(batch: DocumentBatch, max_shards: int) -> list[int]:
    """Positions that split the batch into parts with about the same number of characters.

    >>> split_batch(["a short one", "another"], 2)
    [0, 2]
    """
    if max_shards == 1:
        return [0, len(batch)]
    lengths = (
        np.diff(batch.edges)
        if isinstance(batch, PackedDocuments)
        else np.fromiter(map(len, batch), np.int64, len(batch))
    )
    # cumulative number of characters (documents,); cut it at equal shares
    sizes = np.cumsum(lengths)
    threads = max(1, min(max_shards, int(sizes[-1]) // CHARACTERS_PER_THREAD))
    cuts = np.searchsorted(sizes, sizes[-1] * np.arange(1, threads) / threads, side="right")
    return [0, *cuts.tolist(), len(batch)]


@contextmanager
def locate_decoding_errors(documents: DocumentBatch, start: int) -> Iterator[None]:
    """Re-raise the kernel's decoding errors with the number of the document."""
    try:
        yield
    except UnicodeError as error:
        number = int(error.args[0])
        raise make_decoding_error(documents[number], start + number) from None


def make_decoding_error(document: Document, number: int) -> DataError:
    try:
        document.decode() if isinstance(document, bytes) else document.encode()
    except UnicodeError as error:
        at: int = error.start  # type: ignore[attr-defined]  # coding errors have it
        if isinstance(document, bytes):
            return DataError(
                f"document {number}: byte {at} is not UTF-8; decode it first, or replace the invalid bytes."
            )
        return DataError(f"document {number}: character {at} is half a surrogate pair; remove or replace it.")
    return DataError(f"document {number} cannot be read.")


def convert_classes(group: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """The class and the weight of each document as the kernel reads them."""
    weights = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    return np.ascontiguousarray(group, dtype=np.int32), weights
