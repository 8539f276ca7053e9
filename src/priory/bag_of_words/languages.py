"""Stop words and stemmers by language."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from priory.errors import DataError, MissingDependencyError


def load_stop_words(language_or_words: str | Iterable[str] | None) -> frozenset[str] | None:
    """Return the stop words of a language such as "en", or the given words, as a frozenset."""
    if language_or_words is None:
        return None
    if isinstance(language_or_words, str):
        return _load_stop_words_of_language(language_or_words)
    return frozenset(language_or_words)


@lru_cache(maxsize=8)
def _load_stop_words_of_language(language: str) -> frozenset[str]:
    try:
        from stopwordsiso import has_lang, stopwords
    except ImportError:
        raise MissingDependencyError("stop words by language need stopwordsiso: pip install 'priory[text]'.") from None
    if not has_lang(language):
        raise DataError(f"stop_words is {language!r}; use a language code such as 'en', or give the words.")
    return frozenset(stopwords(language))


class Stemmer(Protocol):
    """The part of PyStemmer's interface that is used."""

    def stemWords(self, words: list[str]) -> list[str]:
        """The stem of each word."""


def load_stemmer(language: str | None) -> Stemmer:
    """The Snowball stemmer of a language."""
    try:
        import Stemmer as snowball
    except ImportError:
        raise MissingDependencyError("stem needs PyStemmer: pip install 'priory[text]'.") from None
    if language not in snowball.algorithms():
        raise DataError(f"stem is {language!r}; use one of {', '.join(snowball.algorithms())}.")
    stemmer: Stemmer = snowball.Stemmer(language)
    return stemmer
