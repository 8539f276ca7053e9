"""Hashes that are the same on every machine, for records and for arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import blake2b

import numpy as np
from numpy import ndarray as Array

# odd multipliers with about as many ones as zeros
MIX_ONE, MIX_TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
HALF = np.uint64(32)
WORD_MASK = (1 << 64) - 1


def hash_content(value: object) -> str:
    """Hash a tree of dataclasses, tuples and arrays to sixteen hexadecimal digits.

    >>> hash_content((1, np.array([2.0]))) == hash_content((1, np.array([2.0])))
    True
    >>> hash_content((1, np.array([2.0]))) == hash_content((1, np.array([2.5])))
    False
    """
    digest = blake2b(digest_size=8)
    for piece in _iter_pieces(value):
        # with lengths, so that pieces cannot be shifted across their boundary
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def _iter_pieces(value: object) -> Iterator[bytes]:
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for field in fields(value):
            yield from _iter_pieces(getattr(value, field.name))
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, tuple | list | np.ndarray):
        yield f"{len(value)} items".encode()
        for item in value:
            yield from _iter_pieces(item)
    else:
        yield repr(value).encode(errors="surrogatepass")


def scramble_bits(x: Array) -> Array:
    """Mix 64-bit numbers so that every bit of the result depends on every bit of the input."""
    mixed = (x ^ (x >> HALF)) * MIX_ONE
    mixed ^= mixed >> HALF
    mixed *= MIX_TWO
    mixed ^= mixed >> HALF
    return mixed


def scramble_number(x: int) -> int:
    """Apply `scramble_bits` to one Python integer.

    >>> scramble_number(5) == int(scramble_bits(np.array([5], dtype=np.uint64))[0])
    True
    """
    x = (x ^ (x >> 32)) * 0xBF58476D1CE4E5B9 & WORD_MASK
    x = (x ^ (x >> 32)) * 0x94D049BB133111EB & WORD_MASK
    return x ^ (x >> 32)
