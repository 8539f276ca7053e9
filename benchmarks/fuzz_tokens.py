"""Random texts and bytes through the text kernel and its Python twin: a million inputs without a difference.

    python benchmarks/fuzz_tokens.py [inputs] [seed]

To look for memory errors, rebuild the kernel and run a few thousand of the same inputs:

    CFLAGS="-O1 -g -fsanitize=address" python setup.py build_ext --inplace --force
    PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$(gcc -print-file-name=libasan.so) \\
        python benchmarks/fuzz_tokens.py 20000

    CFLAGS="-O1 -g" python setup.py build_ext --inplace --force
    PYTHONMALLOC=malloc valgrind --error-exitcode=1 python benchmarks/fuzz_tokens.py 2000
"""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from types import ModuleType

import numpy as np

from priory.core._kernel import text as compiled
from priory.errors import DataError
from priory.text import tokenizer as tokens
from priory.text import vocabulary as hashing
from priory.text.token_counts import count_tokens
from priory.text.tokenizer import TokenIndex, Tokenizer, encode_documents, score_documents
from priory.text.vocabulary import count_hashed_tokens
from reference_kernels import text as reference

BATCH = 250
LETTERS = "aAbBzZ09_ \n\t\0.,!?-'éÉßẞΣσςİıǅﬁ中国語กำ٣²ªKÅ\u0301\u0307\u00a0\u200d\u2028\x1c\x85😀𝔘𐐀\U0010ffff"
RULES = [
    Tokenizer(),
    Tokenizer(min_token_length=1, ngram_range=(1, 3)),
    Tokenizer(lowercase=False, ngram_range=(2, 2)),
    Tokenizer(analyzer="char", ngram_range=(1, 4)),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 5)),
    Tokenizer(extra_tokens="!?_é", ngram_range=(1, 2)),
    Tokenizer(stop_words=frozenset({"aa", "中", "zz", "σς"}), min_token_length=1, ngram_range=(1, 2)),
]


def text(rng: random.Random) -> str:
    """A random text: often few letters, sometimes any code points, now and then longer than a block."""
    if rng.random() < 0.002:
        return text(rng) * rng.randrange(1, 2000)
    if rng.random() < 0.2:
        return "".join(chr(rng.choice((rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)))) for _ in range(9))
    few = rng.sample(LETTERS, rng.randrange(1, 9))
    return "".join(rng.choices(few, k=rng.randrange(40)))


def noise(rng: random.Random) -> bytes:
    """Random bytes that are almost valid UTF-8."""
    blob = bytearray(text(rng)[:60].encode() + rng.randbytes(rng.randrange(4)))
    if rng.random() < 0.3:
        rng.shuffle(blob)
    return bytes(blob)


def compute_results(
    twin: ModuleType, documents: list[str | bytes], rule: Tokenizer, vocabulary: list[str], once: bool
) -> list[object]:
    """Everything that one of the two implementations computes from the documents."""
    tokens.kernel = hashing.kernel = twin
    tokens._cached_rule.cache_clear()
    group, weight = np.arange(len(documents)) % 3, np.arange(len(documents)) % 4.0
    words = count_tokens(documents, group, 3, rule, weight, binary=once, max_tokens=None).sort_tokens()
    index = TokenIndex.of(vocabulary, rule.analyzer)
    ends, columns, times = encode_documents(documents, index, rule, unknown=True)
    rows = [sorted(zip(columns[a:b].tolist(), times[a:b].tolist(), strict=True)) for a, b in pairwise(ends)]
    table = np.arange(2.0 * len(vocabulary)).reshape(-1, 2)
    scores = score_documents(documents, index, table, rule, binary=once, unknown=np.ones(2))
    hashed = count_hashed_tokens(documents, group, 3, rule, 61, 12345, weight, binary=once)
    return [words.tokens(), words.counts.tolist(), words.n.tolist(), rows, scores.tolist(), hashed.tolist()]


def readable(blob: bytes) -> bool:
    try:
        blob.decode()
    except UnicodeDecodeError:
        return False
    return True


def main(inputs: int = 1_000_000, seed: int = 0) -> None:
    rng = random.Random(seed)
    refused = 0
    for start in range(0, inputs, BATCH):
        rule, once = rng.choice(RULES), rng.random() < 0.5
        texts = [text(rng) for _ in range(BATCH // 2)]
        documents = [t.encode() if rng.random() < 0.5 else t for t in texts]
        blobs = [noise(rng) for _ in range(BATCH - len(documents))]
        documents += [blob for blob in blobs if readable(blob)]
        tokens.kernel = compiled
        tokens._cached_rule.cache_clear()
        vocabulary = count_tokens(documents[::3], np.zeros(len(documents[::3])), 1, rule).tokens()
        arguments = (documents, rule, vocabulary, once)
        if compute_results(reference, *arguments) != compute_results(compiled, *arguments):
            raise SystemExit(f"the twins differ at input {start}, seed {seed}, {rule}")
        for blob in blobs:
            if not readable(blob):
                refused += 1
                try:
                    count_tokens([blob], np.zeros(1), 1, rule)
                except DataError:
                    continue
                raise SystemExit(f"{blob!r} was counted")
    print(f"{inputs:,} inputs, {refused:,} of them not text and refused; no difference")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
