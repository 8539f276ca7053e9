"""Tokens of texts, and the evidence of texts: docs/format.md, "Texts"."""

import re
import unicodedata
from itertools import pairwise

import numpy as np

from second_reader.model_file import require, split

RULE = {"lowercase": True, "analyzer": "word", "min_token_length": 2, "ngram_range": [1, 1], "stop_words": None}
RULE |= {"stem": None, "extra_tokens": "", "reader": "text"}
SCRIPTS = """3005-3008 3400-4DC0 4E00-A000 F900-FB00 20000-33480 3041-30FB 30FC-3100 31F0-3200 FF66-FFA0 1B000-1B170
E01-F00 1000-10A0 1780-1800 A9E0-AA00 AA60-AA80 | 41-2B0 1E00-1F00 2C60-2C80 A720-A800 AB30-AB70 | 370-400
1F00-2000 | 400-530 1C80-1C90 2DE0-2E00 A640-A6A0 | 530-590 FB13-FB18 | 590-600 FB1D-FB50 | 600-700 750-780
870-900 FB50-FE00 FE70-FF00 | 700-750 | 780-7C0 | 7C0-800 | 900-980 A8E0-A900 | 980-A00 | A00-A80 | A80-B00 |
B00-B80 | B80-C00 | C00-C80 | C80-D00 | D00-D80 | D80-E00 | F00-1000 | 10A0-1100 1C90-1CC0 2D00-2D30 | 1100-1200
3130-3190 A960-A980 AC00-D800 FFA0-FFE0 | 1200-13A0 2D80-2DE0 AB00-AB30 | 13A0-1400 AB70-ABC0 | 1800-18B0"""
SPANS = [(k, *(int(x, 16) for x in span.split("-"))) for k, s in enumerate(SCRIPTS.split("|")) for span in s.split()]
SYMBOLS = ((0x21, 0x3100), (0xFE30, 0xFF66), (0x1F000, 0x1FB00))  # whose P and S are words by themselves among pairs


def kind_of(letter):
    """What a character is to words: a mark, other, a letter (A without spaces, B to Z by script), a symbol or blank."""
    category = unicodedata.category(letter)
    if letter == "_" or letter.isdecimal() or category in ("Mn", "Mc"):
        return "m" if category[0] == "M" else "o"
    if letter.isalnum():
        return next((chr(65 + k) for k, a, b in SPANS if a <= ord(letter) < b), "o")
    return "s" if category[0] in "PS" and any(a <= ord(letter) < b for a, b in SYMBOLS) else " "


def tokenise(text, rule, with_symbols=False):
    """The tokens of a text: words, characters of scripts without spaces and their pairs, and n-grams of these."""
    plain = {"stem": None, "extra_tokens": "", "reader": "text"}
    is_known = plain.items() <= rule.items() and not rule["stop_words"] and rule["analyzer"] in ("auto", "word")
    require(is_known, "a tokenizer that this reader does not know")
    text, words = unicodedata.normalize("NFC", text), []
    if rule["lowercase"]:
        text = "".join(c.lower() for c in (text.lower() if re.search("[Σİ]", text) else text))
    kinds = "".join(map(kind_of, text))
    for found in re.finditer(r"A[Am]*|[mo]*([B-Z])(\1|[mo])*|[mo]+|s", kinds):
        if found[0][0] == "A":
            parts = [text[found.start() + c.start() : found.start() + c.end()] for c in re.finditer("Am*", found[0])]
            words += [w for i, part in enumerate(parts) for w in ([parts[i - 1] + part, part] if i else [part])]
        elif with_symbols if found[0] == "s" else len(found[0]) >= rule["min_token_length"]:
            words.append(text[found.start() : found.end()][:1024])
    low, high = rule["ngram_range"]
    return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]


def fold(a, b):
    return (a * b) % 2**64 ^ (a * b) >> 64


def make_seed(i):
    z = i * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return (z ^ z >> 31) | 1


SEEDS = [make_seed(i) for i in (1, 2, 3)]


def hash_token(token):
    raw, found = token.encode(), 0
    for i in range(0, len(raw), 16):
        a, b = (int.from_bytes(raw[k : k + 8], "little") for k in (i, i + 8))
        found = fold(a ^ SEEDS[0] ^ found, b ^ SEEDS[1])
    return fold(found ^ len(raw), SEEDS[2])


def find_features(known, texts, rule, start):
    """For each text the places of its features from ``start``: tokens, pairs of neighbours, n-grams in words."""
    require(not len(known["buckets"]), "hashed tokens")
    pairs, characters = known["pairs"].tolist(), known["characters"].tolist()
    names = split(known["arena"], known["ends"]) + [("pair", bucket) for bucket in pairs]
    names += [("n-gram", bucket) for bucket in characters]
    place, found = {name: start + k for k, name in enumerate(names)}, []
    for text in texts:
        shown = tokenise(text, rule)
        parts = {f" {t} "[i : i + n] for t in shown for n in range(2, 6) for i in range(len(t) + 3 - n)}
        shown += [("n-gram", hash_token(part) % 2**22) for part in parts if characters]
        near = tokenise(text, rule | {"min_token_length": 1}, with_symbols=True) if pairs else []
        hashes = pairwise(map(hash_token, near))
        shown += [("pair", fold(a ^ SEEDS[1], b ^ SEEDS[2]) % 2**24) for a, b in hashes]
        found.append(sorted({place[name] for name in shown if name in place}))
    return found, start + len(names)


def score_texts(record, options, rule, texts):
    """(rows, classes): log p(tokens | c); a token that was never learned is no evidence."""
    odd = {options.get(name) for name in ("vocabulary", "buckets", "stop_words")}
    is_known = options["model"] in ("binary", "multinomial") and not isinstance(options["alpha"], str) and odd == {None}
    require(is_known, "a text model")
    place = {word: k for k, word in enumerate(split(record["arena"], record["ends"]))}
    table = np.log(record["counts"] + options["alpha"])
    table = table - np.log(record["counts"].sum(axis=0) + options["alpha"] * len(place))
    once = set if options["model"] == "binary" else list
    found = [[place[t] for t in once(tokenise(text, rule)) if t in place] for text in texts]
    return np.array([table[ids].sum(axis=0) for ids in found])
