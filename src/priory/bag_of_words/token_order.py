"""The order of a vocabulary: tokens are sorted by their code points, which in UTF-8 is the order of their bytes.

A vocabulary is ``arena``, all tokens in UTF-8 one after the other, and ``ends``, where each of them ends. Sorted, it is
a function of its tokens alone, whatever the order in which they were met.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from priory.core.typing import Array

KEY_BYTES = 8  # compared at a time, as one number


def find_token_order(arena: Array, ends: Array) -> Array:
    """(tokens,): the numbers of the tokens in sorted order.

    >>> words = [b"win", b"cash", b"cashier", b"a"]
    >>> arena, ends = np.frombuffer(b"".join(words), np.uint8), np.cumsum([len(word) for word in words])
    >>> find_token_order(arena, ends).tolist()
    [3, 1, 2, 0]
    """
    starts, order = find_token_starts(ends), np.arange(len(ends))
    place, run, offset = (
        order.copy(),
        np.zeros(len(ends), dtype=np.int64),
        0,
    )  # places not yet settled, and runs of equals
    while len(place):
        tokens = order[place]
        rest = ends[tokens] - starts[tokens] - offset  # bytes that are left of each token
        key = _read_keys(arena, starts[tokens] + offset, rest)
        rest = np.minimum(rest, KEY_BYTES + 1)  # of tokens with the same key the one that ends first is less
        sorting = np.lexsort((rest, key, run)) if offset else np.lexsort((rest, key))
        order[place], key, rest, run = tokens[sorting], key[sorting], rest[sorting], run[sorting]
        equal = (run[1:] == run[:-1]) & (key[1:] == key[:-1]) & (rest[:-1] > KEY_BYTES)
        tied = np.append(equal, False) | np.append(False, equal)
        run = np.cumsum(np.append(False, ~equal))[tied]
        place, offset = place[tied], offset + KEY_BYTES
    return order


def find_token_starts(ends: Array) -> Array:
    """Where each token begins."""
    return np.concatenate([np.zeros(min(len(ends), 1), dtype=np.int64), ends[:-1]])


def is_sorted_vocabulary(arena: Array, ends: Array) -> bool:
    """Whether every token is greater than the one before."""
    starts, pair, offset = find_token_starts(ends), np.arange(len(ends) - 1), 0  # pairs of neighbours not yet settled
    while len(pair):
        rests = [ends[tokens] - starts[tokens] - offset for tokens in (pair, pair + 1)]
        keys = [_read_keys(arena, starts[pair + i] + offset, rests[i]) for i in (0, 1)]
        equal = keys[0] == keys[1]
        continued = equal & (rests[0] > KEY_BYTES)
        if (keys[0] > keys[1]).any() or (equal & (np.minimum(rests[0], KEY_BYTES) >= rests[1])).any():
            return False
        pair, offset = pair[continued], offset + KEY_BYTES
    return True


def locate_tokens(arena: Array, ends: Array, other_arena: Array, other_ends: Array) -> tuple[Array, Array]:
    """For each token of another vocabulary where it is in a sorted one, or would be, and whether it is there.

    By bisection: for a few tokens and a large vocabulary.
    """
    view, starts = arena.tobytes(), find_token_starts(ends)
    others, other_starts = other_arena.tobytes(), find_token_starts(other_ends)

    def spell_token(number: int) -> bytes:
        return view[starts[number] : ends[number]]

    words = [others[a:b] for a, b in zip(other_starts.tolist(), other_ends.tolist(), strict=True)]
    places = [bisect_left(range(len(ends)), word, key=spell_token) for word in words]
    found = [place < len(ends) and spell_token(place) == word for place, word in zip(places, words, strict=True)]
    return np.array(places, dtype=np.int64), np.array(found, dtype=bool)


def insert_tokens(arena: Array, ends: Array, places: Array, more: Array, more_ends: Array) -> tuple[Array, Array]:
    """A vocabulary with more tokens, each before the token whose number is its place; places never fall."""
    starts, sizes = find_token_starts(ends), np.diff(ends, prepend=0)
    more_sizes = np.diff(more_ends, prepend=0)
    at = np.append(starts, len(arena))[places]
    return np.insert(arena, np.repeat(at, more_sizes), more), np.cumsum(np.insert(sizes, places, more_sizes))


def _read_keys(arena: Array, starts: Array, sizes: Array) -> Array:
    """(tokens,): the first eight bytes of each token as a number, filled up with zeros."""
    padded = np.append(arena, np.zeros(KEY_BYTES, dtype=np.uint8))
    windows = np.lib.stride_tricks.sliding_window_view(padded, KEY_BYTES)
    key = np.ascontiguousarray(windows[starts]).view(">u8")[:, 0].astype(np.uint64)
    missing = (8 * (KEY_BYTES - np.minimum(sizes, KEY_BYTES))).astype(np.uint64)  # bits that belong to the next token
    return np.asarray(key >> missing << missing)
