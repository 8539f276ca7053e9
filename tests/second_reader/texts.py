"""Tokens of texts, and the evidence of texts: docs/format.md, "Texts"."""

import re
import unicodedata

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


def tokenise(text, rule):
    """The tokens of a text: words, characters of scripts without spaces and their pairs, and n-grams of these."""
    is_known = (rule["analyzer"], rule["stem"], rule["extra_tokens"], rule["reader"]) == ("word", None, "", "text")
    require(is_known and not rule["stop_words"], "a tokenizer that this reader does not know")
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
    low, high = rule["ngram_range"]
    return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]


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
