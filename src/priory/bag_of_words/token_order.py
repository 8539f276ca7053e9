"""Sort vocabularies: tokens are ordered by code points, which in UTF-8 is the order of their bytes.

A vocabulary is ``arena``, all tokens concatenated in UTF-8, and ``ends``, the end of each token. Once sorted, it does
not depend on the order in which the tokens occurred.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from priory.core.typing import Array

KEY_BYTES = 8  # compared at a time, as one number


def find_token_order(arena: Array, ends: Array) -> Array:
    """Indices that sort the tokens, (tokens,).

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
    )  # positions not yet sorted, and runs of equal prefixes
    while len(place):
        tokens = order[place]
        rest = ends[tokens] - starts[tokens] - offset  # remaining bytes of each token
        key = _read_keys(arena, starts[tokens] + offset, rest)
        rest = np.minimum(rest, KEY_BYTES + 1)  # of tokens with the same key, the shorter comes first
        sorting = np.lexsort((rest, key, run)) if offset else np.lexsort((rest, key))
        order[place], key, rest, run = tokens[sorting], key[sorting], rest[sorting], run[sorting]
        # Ties are compared by their next eight bytes; everything else is sorted.
        equal = (run[1:] == run[:-1]) & (key[1:] == key[:-1]) & (rest[:-1] > KEY_BYTES)
        tied = np.append(equal, False) | np.append(False, equal)
        run = np.cumsum(np.append(False, ~equal))[tied]
        place, offset = place[tied], offset + KEY_BYTES
    return order


def find_token_starts(ends: Array) -> Array:
    """Start of each token in the arena, (tokens,)."""
    return np.concatenate([np.zeros(min(len(ends), 1), dtype=np.int64), ends[:-1]])


def is_sorted_vocabulary(arena: Array, ends: Array) -> bool:
    """Whether the tokens are strictly increasing."""
    starts, pair, offset = find_token_starts(ends), np.arange(len(ends) - 1), 0  # pairs of neighbours not yet compared
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
    """Position of each token of another vocabulary in a sorted one (or where to insert it), and whether it is there.

    Uses bisection, which suits a few tokens and a large vocabulary.
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
    """Insert tokens into a vocabulary before the positions ``places``, which are non-decreasing."""
    starts, sizes = find_token_starts(ends), np.diff(ends, prepend=0)
    more_sizes = np.diff(more_ends, prepend=0)
    at = np.append(starts, len(arena))[places]
    return np.insert(arena, np.repeat(at, more_sizes), more), np.cumsum(np.insert(sizes, places, more_sizes))


def _read_keys(arena: Array, starts: Array, sizes: Array) -> Array:
    """The first eight bytes of each token as a big-endian number, padded with zeros: (tokens,)."""
    padded = np.append(arena, np.zeros(KEY_BYTES, dtype=np.uint8))
    windows = np.lib.stride_tricks.sliding_window_view(padded, KEY_BYTES)
    key = np.ascontiguousarray(windows[starts]).view(">u8")[:, 0].astype(np.uint64)
    missing = (8 * (KEY_BYTES - np.minimum(sizes, KEY_BYTES))).astype(np.uint64)  # bits that belong to the next token
    return np.asarray(key >> missing << missing)
