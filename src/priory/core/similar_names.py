"""Names and labels that are almost the same: the one that was probably meant, and groups of similar ones."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

MIN_LIKENESS = 0.6  # ratio of difflib: 1 for equal names


def suggest_name(name: str, known_names: Iterable[str]) -> str:
    """Format the most similar name as a question in parentheses, ignoring case; empty if none is similar.

    >>> suggest_name("clas", ["class", "x"]), suggest_name("price", ["class", "x"])
    (" (did you mean 'class'?)", '')
    """
    from difflib import get_close_matches

    spelt = {known.strip().casefold(): known for known in known_names}
    close = get_close_matches(name.strip().casefold(), spelt, 1, MIN_LIKENESS)
    return f" (did you mean {spelt[close[0]]!r}?)" if close else ""


MIN_LETTERS = 3  # shorter labels differ by one letter without a slip
MAX_LETTERS = 60  # of labels in which slips are looked for
MIN_RATIO = 10.0  # a label with a slip is this much rarer than the right one


def find_similar_labels(counts: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Groups of labels that differ by case, blanks or Unicode form, or by one slip in a rare one; commonest first.

    >>> find_similar_labels({"yes": 20, "Yes": 3, "yes ": 1, "yse": 1, "no": 30})
    [('yes', 'Yes', 'yes ', 'yse')]
    >>> find_similar_labels({"cat": 20, "car": 18, "class 1": 30, "class 2": 1})
    []
    """
    spelt: defaultdict[str, list[str]] = defaultdict(list)  # labels that differ in their spelling only
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        spelt[" ".join(unicodedata.normalize("NFKC", label).casefold().split())].append(label)
    weight = {key: sum(counts[label] for label in labels) for key, labels in spelt.items()}
    meant = {key: key for key in spelt}
    for one, other in _find_slips(spelt):
        common, rare = sorted((one, other), key=lambda key: -weight[key])
        if weight[common] >= MIN_RATIO * weight[rare] and meant[common] == common:
            meant[rare] = common
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for key in sorted(spelt, key=lambda key: -weight[key]):
        groups[meant[key]] += spelt[key]
    return [tuple(labels) for labels in groups.values() if len(labels) > 1]


def describe_similar_labels(counts: Mapping[str, float], max_groups: int = 5) -> str:
    """One line about labels that were probably meant to be one, with their counts; "" if there are none."""
    groups = find_similar_labels(counts)
    shown = [" and ".join(f"{label!r} ({counts[label]:,g})" for label in group[:5]) for group in groups[:max_groups]]
    more = f" and {len(groups) - max_groups} more" if len(groups) > max_groups else ""
    return f"labels that may mean the same are different classes: {'; '.join(shown)}{more}" if groups else ""


def _find_slips(words: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Pairs of words that are one slip apart: they are equal, or with a letter less they are."""
    shorter: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        if MIN_LETTERS <= len(word) <= MAX_LETTERS:
            for key in dict.fromkeys([word, *(word[:i] + word[i + 1 :] for i in range(len(word)))]):
                yield from ((other, word) for other in shorter[key] if _is_one_slip(other, word))
                shorter[key].append(word)


def _is_one_slip(one: str, other: str) -> bool:
    """Whether one letter is changed, missing or added, or two neighbours are swapped."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    differs_by_one = len(one) <= 1 and len(other) <= 1
    return (one + other).isalpha() and (differs_by_one or (len(one) == 2 and one == other[::-1]))
