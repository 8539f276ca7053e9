"""Hashed pairs of neighbouring words, as additional features of a refinement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from priory.bag_of_words import hashed_counts as hashing
from priory.bag_of_words.documents import DocumentBatch
from priory.bag_of_words.single_texts import SingleTextHasher
from priory.bag_of_words.token_bags import PAIR_BUCKETS, AnyDocuments, TokenBags, count_letters
from priory.bag_of_words.tokenizer import Tokenizer
from priory.bag_of_words.vocabulary import Vocabulary

PAIR_SALT = 0


def has_word_pairs(tokenizer: Tokenizer) -> bool:
    """Whether tokens are single words, so that pairs are additional features."""
    return tokenizer.analyzer == "word" and tokenizer.ngram_range == (1, 1)


def make_pair_hasher(tokenizer: Tokenizer) -> SingleTextHasher:
    """Make a hasher for the pairs of single documents."""
    return SingleTextHasher(replace(tokenizer, ngram_range=(2, 2)), PAIR_BUCKETS, PAIR_SALT)


def read_word_pairs(documents: DocumentBatch, tokenizer: Tokenizer) -> TokenBags:
    """Hash the pairs of words of each document."""
    pairs = replace(tokenizer, ngram_range=(2, 2))
    indptr, buckets, occurrences = hashing.encode_hashed_documents(documents, pairs, PAIR_BUCKETS, PAIR_SALT)
    rows = indptr.astype(np.int64), buckets.astype(np.int64), occurrences
    return TokenBags(np.zeros(0, np.uint8), np.zeros(0, np.int64), *rows, count_letters(documents))


def read_kept_bags(vocabulary: Vocabulary, documents: AnyDocuments, with_pairs: bool) -> TokenBags:
    """Tokenise documents for a sample of rows, with their pairs if tokens are words."""
    bags = vocabulary.read_bags(documents)
    if isinstance(documents, TokenBags) or not with_pairs or not has_word_pairs(vocabulary.tokenizer):
        return bags
    return replace(bags, pairs=read_word_pairs(documents, vocabulary.tokenizer))


def take_word_pairs(documents: AnyDocuments, tokenizer: Tokenizer) -> TokenBags:
    """The pairs of documents: stored with tokenised ones, otherwise read now; empty if they were not stored."""
    if not isinstance(documents, TokenBags):
        return read_word_pairs(documents, tokenizer)
    return documents.without_tokens() if documents.pairs is None else documents.pairs
