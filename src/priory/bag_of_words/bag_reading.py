"""Convert texts to sparse rows of tokens in one pass: number tokens as they occur, and sort them at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from priory._kernel import text as kernel
from priory.bag_of_words.documents import Document, DocumentBatch
from priory.bag_of_words.token_order import find_token_order
from priory.bag_of_words.tokenizer import Tokenizer, join_row_parts, map_document_shards, take_tokens
from priory.core.typing import Array
from priory.errors import ModelTooLargeError

ShardRows = tuple[int, tuple[Array, Array, Array]]  # the index of a shard, and its documents as sparse rows


def read_token_rows(
    documents: Iterable[Document], tokenizer: Tokenizer
) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """The sorted tokens of texts (``arena`` and ``ends``), and the texts as rows ``(indptr, ids, occurrences)``.

    >>> _, ends, (indptr, ids, occurrences) = read_token_rows(["win cash, win", "cash"], Tokenizer())
    >>> ends.tolist(), indptr.tolist(), ids.tolist(), occurrences.tolist()
    ([4, 7], [0, 2, 3], [1, 0, 0], [2.0, 1.0, 1.0])
    """
    readers: dict[int, kernel.BagReader] = {}

    def read_shard(rule: kernel.Rule, shard: int, part: DocumentBatch, _: slice) -> ShardRows:
        return shard, readers.setdefault(shard, kernel.BagReader()).read(part, rule)

    with _raise_if_too_large():
        shards = list(map_document_shards(documents, tokenizer, read_shard))
        arena, ends, numbers = _join_readers([readers[shard] for shard in sorted(readers)])
    rows = ((row_ends, numbers[shard][found], times) for shard, (row_ends, found, times) in shards)
    return arena, ends, join_row_parts(rows, np.int64)


def _join_readers(readers: list[kernel.BagReader]) -> tuple[Array, Array, list[Array]]:
    """The sorted tokens of all readers, and for each reader the new number of each of its tokens."""
    total, *others = readers or [kernel.BagReader()]
    places = [total.merge(other) for other in others]
    arena, ends, tokens = total.result()
    order = find_token_order(arena, ends)
    rank = np.full(len(order) + 1, -1)  # the last element is for number -1 (no token)
    rank[order] = np.arange(len(order))
    return *take_tokens(arena, ends, order), [rank[tokens], *(rank[tokens][place] for place in places)]


@contextmanager
def _raise_if_too_large() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise ModelTooLargeError(
            "the texts to keep do not fit into memory; set memory to fewer of them, or hash the tokens."
        ) from None
