"""The tokens that corrections give a weight to: chosen once, sorted, and the same whatever is learned afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.bag_counts import BagCounts
from priory.bag_of_words.token_bags import AnyDocuments, TokenBags
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import TokenIndex
from priory.bag_of_words.vocabulary import Vocabulary
from priory.core.registration import register_record
from priory.core.typing import Array

MIN_FEATURE_COUNT = 2  # a token that one document shows says nothing about others


@register_record(
    "TokenFeatures",
    axes={"arena": "k", "ends": "v", "buckets": "b"},
    dtypes={"arena": "u1", "ends": "i8", "buckets": "i8"},
    reveals="words that at least two training texts had",
)
@dataclass(frozen=True, eq=False)
class TokenFeatures:
    """Tokens spelt out (``arena`` and ``ends``, sorted), or the numbers of ``buckets`` where tokens are hashed."""

    arena: Array  # uint8
    ends: Array  # (tokens,)
    buckets: Array  # (buckets,)

    def find_fault(self) -> str | None:
        if not reading.is_valid_vocabulary(self.arena, self.ends) or (len(self.ends) and len(self.buckets)):
            return "the tokens are not UTF-8, do not follow one another, or one of them is there twice"
        return None if (np.diff(self.buckets, prepend=-1) > 0).all() else "the buckets are not sorted"

    @classmethod
    def of(cls, counts: BagCounts) -> TokenFeatures:
        """The tokens (or buckets) that at least two documents show."""
        common = counts.counts.sum(axis=1) >= MIN_FEATURE_COUNT
        if not isinstance(counts, TokenCounts):
            return cls(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.flatnonzero(common).astype(np.int64))
        chosen = counts.take_tokens(common).sort_tokens()
        return cls(chosen.arena, chosen.ends, np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.ends) + len(self.buckets)

    def encode(self, documents: AnyDocuments, vocabulary: Vocabulary) -> scipy.sparse.csr_array:
        """(documents, tokens): sparse rows of unit length, with equal weights for all tokens that a document shows."""
        if len(self.buckets):
            bags = vocabulary.read_bags(documents)
            indptr, ids = bags.indptr, bags.ids
            place = np.searchsorted(self.buckets, ids)
            place[place == len(self.buckets)] = 0
            columns = np.where(self.buckets[place] == ids, place, -1)
        elif isinstance(documents, TokenBags):
            known = self._find_index("whole").find_columns(documents.arena, documents.ends)
            indptr, columns = documents.indptr, known[documents.ids]
        else:
            index = self._find_index(vocabulary.tokenizer.analyzer)
            indptr, columns, _ = reading.encode_documents(documents, index, vocabulary.tokenizer)
        kept = columns >= 0
        sizes = np.diff(np.append(0, np.cumsum(kept))[indptr])  # (documents,): features of each
        values = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes)
        ends = np.append(0, np.cumsum(sizes))
        return scipy.sparse.csr_array((values, columns[kept], ends), shape=(len(documents), len(self)))

    def _find_index(self, analyzer: str) -> TokenIndex:
        """An index of the tokens, made once."""
        known: dict[str, TokenIndex] = self.__dict__.setdefault("_indexes", {})
        if analyzer not in known:
            known[analyzer] = TokenIndex(self.arena, self.ends, analyzer)
        return known[analyzer]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_indexes"}
