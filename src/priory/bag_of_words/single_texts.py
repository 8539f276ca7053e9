"""One document at a time, as the kernel reads it."""

from __future__ import annotations

from priory._kernel import text as kernel
from priory.bag_of_words.documents import Document, prepare_document
from priory.bag_of_words.tokenizer import Tokenizer
from priory.core.typing import Array


class SingleTextReader:
    """Prepares one document at a time."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.rule = tokenizer.build_rule([""])
        self.wide_rule = tokenizer.build_rule(["é"])

    def prepare(self, document: Document) -> tuple[Document, kernel.Rule]:
        """The document, and the rule to read it by."""
        if document.isascii():
            return document, self.rule
        return prepare_document(document, 0, self.tokenizer.lowercase), self.wide_rule


class SingleTextHasher:
    """The buckets of one document at a time."""

    def __init__(self, tokenizer: Tokenizer, buckets: int, salt: int) -> None:
        self.reader = SingleTextReader(tokenizer)
        self.hasher = kernel.TokenHasher(buckets, salt)

    def list_buckets(self, document: Document) -> Array:
        """The buckets of a document's tokens, each once, in order."""
        text, rule = self.reader.prepare(document)
        return self.hasher.encode([text], rule)[1]
