# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""Count and look up tokens without the GIL. See `tests/reference_kernels/text.py`; `priory.text.tokenizer` checks the input.

Documents are processed in blocks: pieces are found, all of them are hashed and their slots prefetched, then they are
looked up together. Overlapping the memory latencies gives most of the speed.
"""

import os

import numpy as np

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from "Python.h":
    void* PyUnicode_DATA(object)
    int PyUnicode_KIND(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)

cdef extern from "radix_sort.h" nogil:
    void sort_numbers(int64_t* numbers, double* values, int64_t n, int64_t* more_numbers, double* more_values)

include "text_trie.pxi"
include "text_rule.pxi"
include "text_pieces.pxi"
include "text_characters.pxi"


cdef inline void fetched(Reader r, Trie trie, int64_t k) noexcept nogil:
    """Hash the pieces and prefetch their slots."""
    cdef Piece* pieces = r.pieces
    cdef Word* words = trie.words
    cdef uint64_t mask = trie.word_size - 1
    cdef int64_t i
    for i in range(k):
        hashed(&pieces[i], &SEEDS)
        soon(&words[pieces[i].hash & mask])


cdef inline int64_t rewritten(Reader r, int64_t k) noexcept nogil:
    """Replace pieces that are rewritten, and remove pieces that are dropped."""
    cdef Piece* pieces = r.pieces
    cdef int64_t i, node, kept = 0
    if r.known is None:
        return k
    fetched(r, r.known, k)
    for i in range(k):
        node = find_word(r.known, &pieces[i])
        pieces[kept] = pieces[i] if node < 0 else r.known.into[node]
        kept += pieces[kept].n > 0
    return kept


cdef inline void keep_last(Reader r, int64_t total) noexcept nogil:
    """Keep the words that begin n-grams of the next block."""
    r.carry = r.rule.high - 1 if total > r.rule.high - 1 else total
    memmove(r.word, r.word + total - r.carry, r.carry * sizeof(int64_t))


cdef int64_t looked_up(Reader r, Trie trie, int64_t k, const double* rows, int64_t width, int64_t known) noexcept nogil:
    """Write the numbers of all tokens of a block to `r.nodes`, prefetching the rows that will be used."""
    cdef int64_t i, n, node, total, limit, found = 0
    cdef Piece* pieces = r.pieces
    k = rewritten(r, k)
    fetched(r, trie, k)
    for i in range(k):
        node = find_word(trie, &pieces[i])
        r.word[r.carry + i] = node
        if r.rule.low == 1 or not r.rule.words:
            if 0 <= node < known:
                soon(rows + node * width)
            r.nodes[found] = node
            found += 1
    if r.rule.high == 1 or not r.rule.words:
        return found
    total = r.carry + k
    memcpy(r.beginning, r.word, total * sizeof(int64_t))
    for n in range(2, r.rule.high + 1):
        limit = total - n + 1
        for i in range(limit):
            if r.beginning[i] >= 0 and r.word[i + n - 1] >= 0:
                soon(gram_home(trie, pair(r.beginning[i], r.word[i + n - 1])))
        for i in range(limit):
            node = find_gram(trie, r.beginning[i], r.word[i + n - 1])
            r.beginning[i] = node
            if n >= r.rule.low and i + n - 1 >= r.carry:
                if 0 <= node < known:
                    soon(rows + node * width)
                r.nodes[found] = node
                found += 1
    keep_last(r, total)
    return found


include "text_counter.pxi"
include "text_order.pxi"
include "text_index.pxi"
include "text_bags.pxi"
include "text_hashed.pxi"
include "text_distinct.pxi"
include "text_open.pxi"
include "text_open_sparse.pxi"
