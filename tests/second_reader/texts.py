"""Tokens of texts, and the evidence of texts: docs/format.md, "Texts"."""

import re
import unicodedata
from itertools import pairwise

import numpy as np

from second_reader.model_file import require, split_arena

SCRIPTS = """3005-3008 3400-4DC0 4E00-A000 F900-FB00 20000-33480 3041-30FB 30FC-3100 31F0-3200 FF66-FFA0 1B000-1B170
E01-F00 1000-10A0 1780-1800 A9E0-AA00 AA60-AA80 | 41-250 250-2B0 1E00-1F00 2C60-2C80 A720-A800 AB30-AB70 | 370-400
1F00-2000 | 400-530 1C80-1C90 2DE0-2E00 A640-A6A0 | 530-590 FB13-FB18 | 590-600 FB1D-FB50 | 600-700 750-780
870-900 FB50-FE00 FE70-FF00 | 700-750 | 780-7C0 | 7C0-800 | 900-980 A8E0-A900 | 980-A00 | A00-A80 | A80-B00 |
B00-B80 | B80-C00 | C00-C80 | C80-D00 | D00-D80 | D80-E00 | F00-1000 | 10A0-1100 1C90-1CC0 2D00-2D30 | 1100-1200
3130-3190 A960-A980 AC00-D800 FFA0-FFE0 | 1200-13A0 2D80-2DE0 AB00-AB30 | 13A0-1400 AB70-ABC0 | 1800-18B0"""
SPANS = [(k, *(int(x, 16) for x in span.split("-"))) for k, s in enumerate(SCRIPTS.split("|")) for span in s.split()]


def kind_of(letter):
    """What a character is to words: a mark (-2), a digit (-1), a letter of script k >= 0, or None."""
    if unicodedata.category(letter) in ("Mn", "Mc"):
        return -2
    if letter == "_" or (letter.isalnum() and letter.isdecimal()):
        return -1
    return next((k for k, a, b in SPANS if a <= ord(letter) < b), -1) if letter.isalnum() else None


def tokenise(text, rule, with_symbols=False):
    """The tokens of a text: words, characters of scripts without spaces and their pairs, and n-grams of these."""
    is_known = (rule["stem"], rule["extra_tokens"], rule["reader"]) == (None, "", "text")
    is_known &= rule["analyzer"] in ("auto", "word") and not rule["stop_words"]
    require(is_known, "a tokenizer that this reader does not know")
    text, run, last, words = unicodedata.normalize("NFC", text), [], None, []
    if rule["lowercase"]:
        text = "".join(c.lower() for c in (text.lower() if re.search("[Σİ]", text) else text))
    for letter in text + " ":
        kind = kind_of(letter)
        joins = {None: False, 0: kind in (0, -2), -1: kind not in (0, None)}.get(last, kind in (-2, -1, last))
        if not joins:
            if last == 0:
                words += [w for i, c in enumerate(run) for w in ([run[i - 1] + c, c] if i else [c])]
            elif len("".join(run)) >= rule["min_token_length"]:
                words.append("".join(run)[:1024])
            run = []
        if joins and kind == -2 and last == 0:
            run[-1] += letter
        elif kind is not None:
            run.append(letter)
        last = None if kind is None else max(kind, -1) if not joins else last if kind < 0 else kind
        if with_symbols and is_symbol(letter):
            words.append(letter)
    low, high = rule["ngram_range"]
    return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]


def is_symbol(letter):
    """Whether a character is a word by itself among pairs of neighbours."""
    is_near = any(a <= ord(letter) < b for a, b in ((0x21, 0x3100), (0xFE30, 0xFF66), (0x1F000, 0x1FB00)))
    return is_near and unicodedata.category(letter)[0] in "PS" and letter != "_"


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


def find_features(known, texts, rule):
    """For each text the features that it has: tokens, pairs of neighbours, n-grams of characters, in this order."""
    names = split_arena(known["arena"], known["ends"]), known["pairs"].tolist(), known["characters"].tolist()
    require(not len(known["buckets"]), "hashed tokens")
    place = {key: k for k, key in enumerate((kind, name) for kind, own in enumerate(names) for name in own)}
    found = []
    for text in texts:
        tokens, shown = tokenise(text, rule), []
        if len(names[1]):
            words = [hash_token(w) for w in tokenise(text, rule | {"min_token_length": 1}, with_symbols=True)]
            pairs = pairwise(words)
            shown += [(1, fold(a ^ SEEDS[1], b ^ SEEDS[2]) % 2**24) for a, b in pairs]
        if len(names[2]):
            parts = [f" {t} "[i : i + n] for t in tokens for n in range(2, 6) for i in range(len(t) + 3 - n)]
            shown += [(2, hash_token(part) % 2**22) for part in parts]
        found.append(sorted({place[key] for key in [*((0, t) for t in tokens), *shown] if key in place}))
    return found


def score_texts(record, options, texts):
    """(texts, classes): log p(tokens | c); a token that was never learned is no evidence."""
    odd = [options.get(name) for name in ("vocabulary", "buckets", "max_features", "stop_words")]
    is_known = options["model"] in ("binary", "multinomial") and not isinstance(options["alpha"], str)
    is_known &= odd == [None] * 4 and (options.get("min_df", 1), options.get("max_df", 1.0)) == (1, 1.0)
    require(is_known, "a text model that this reader does not know")
    place = {word: k for k, word in enumerate(split_arena(record["arena"], record["ends"]))}
    table = np.log(record["counts"] + options["alpha"])
    table = table - np.log(record["counts"].sum(axis=0) + options["alpha"] * len(place))
    found = [[place[t] for t in tokenise(text, options["tokenizer"]) if t in place] for text in texts]
    once = options["model"] == "binary"
    return np.array([table[sorted(set(ids)) if once else ids].sum(axis=0) for ids in found])
