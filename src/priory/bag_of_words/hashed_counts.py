"""Feature hashing: count, score and encode tokens hashed into a fixed number of buckets; words are not stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from priory._kernel import text as kernel
from priory.bag_of_words.bag_counts import BagCounts
from priory.bag_of_words.documents import Document, DocumentBatch, check_classes_and_weights, check_document_count
from priory.bag_of_words.sparse_counts import CountTable
from priory.bag_of_words.tokenizer import Tokenizer, join_row_parts, map_document_shards
from priory.core.machine import total_memory_bytes
from priory.core.registration import register_record
from priory.core.typing import Array
from priory.errors import ModelTooLargeError

TABLES_OF_BUCKETS = 3  # in memory at once: the counts, the counts of a thread, and the weights
DEFAULT_BUCKETS = 1 << 18


@register_record(
    "Buckets",
    axes={"n": "c", "counts": "vc"},
    reveals="counts of hashed words, and the salt with which a guessed word can be looked up",
)
@dataclass(frozen=True, eq=False)
class HashedCounts(BagCounts):
    """Documents of each class, and counts of the tokens of each bucket in each class; words are not stored."""

    n: Array  # (classes,)
    counts: CountTable  # (buckets, classes)

    def find_fault(self) -> str | None:
        return "a count is negative" if self.counts.min(initial=0.0) < 0 else None


def count_hashed_tokens(
    documents: Iterable[Document],
    group: Array,
    groups: int,
    tokenizer: Tokenizer,
    buckets: int,
    salt: int,
    weight: Array | None = None,
    *,
    binary: bool = True,
) -> Array:
    """Count tokens hashed with the model's salt, (buckets, classes). Counts merge by addition.

    Tokens that share a bucket are treated as one token: ``binary`` counts a bucket once for each document.
    """
    check_bucket_memory(buckets, groups)
    hasher = kernel.TokenHasher(buckets, salt)
    classes, weights = check_classes_and_weights(group, groups, weight)

    def count_shard(rule: kernel.Rule, _: int, part: DocumentBatch, rows: slice) -> tuple[int, Array]:
        check_document_count(max(rows.stop, len(classes)), classes)
        return len(part), hasher.count(
            part, rule, classes[rows], None if weights is None else weights[rows], groups, binary
        )

    total, read = np.zeros((buckets, groups)), 0
    for documents_read, counts in map_document_shards(documents, tokenizer, count_shard):
        total += counts
        read += documents_read
    check_document_count(read, classes)
    return total


def check_bucket_memory(buckets: int, groups: int) -> None:
    """Raise ModelTooLargeError if the counts, the weights and the counts of each thread do not fit into memory."""
    needed, available = TABLES_OF_BUCKETS * 8 * buckets * max(groups, 1), total_memory_bytes()
    if available is not None and needed > available:
        raise ModelTooLargeError(
            f"buckets={buckets:,} with {groups:,} classes need about {needed / 2**30:,.0f} GiB, and this machine has "
            f"{available / 2**30:,.0f}; use fewer buckets, such as {DEFAULT_BUCKETS:,}."
        )


def score_hashed_tokens(
    documents: Iterable[Document], table: Array, tokenizer: Tokenizer, salt: int, *, binary: bool = True
) -> Array:
    """Sum of ``table[bucket]`` over the tokens of each document, (documents, columns of the table)."""
    rows = np.ascontiguousarray(table, dtype=np.float64)
    hasher = kernel.TokenHasher(len(rows), salt)
    parts = map_document_shards(documents, tokenizer, lambda rule, _, part, __: hasher.score(part, rule, rows, binary))
    return np.concatenate([np.zeros((0, rows.shape[1])), *parts])


def encode_hashed_documents(
    documents: DocumentBatch, tokenizer: Tokenizer, buckets: int, salt: int
) -> tuple[Array, Array, Array]:
    """Encode documents as sparse rows ``(indptr, buckets, occurrences)``, with sorted buckets."""
    hasher = kernel.TokenHasher(buckets, salt)
    return join_row_parts(
        map_document_shards(documents, tokenizer, lambda rule, _, part, __: hasher.encode(part, rule)), np.int64
    )
