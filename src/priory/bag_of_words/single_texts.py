"""Prepare and hash one document at a time."""

from __future__ import annotations

from priory._kernel import text as kernel
from priory.bag_of_words.documents import Document, prepare_document
from priory.bag_of_words.tokenizer import Tokenizer
from priory.core.typing import Array


class SingleTextReader:
    """Prepares single documents for the kernel."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.rule = tokenizer.build_rule([""])
        self.wide_rule = tokenizer.build_rule(["é"])

    def prepare(self, document: Document) -> tuple[Document, kernel.Rule]:
        """Return the document and the rule by which the kernel tokenizes it."""
        if document.isascii():
            return document, self.rule
        return prepare_document(document, 0, self.tokenizer.lowercase), self.wide_rule


class SingleTextHasher:
    """Hashes the tokens of single documents."""

    def __init__(self, tokenizer: Tokenizer, buckets: int, salt: int) -> None:
        self.reader = SingleTextReader(tokenizer)
        self.hasher = kernel.TokenHasher(buckets, salt)

    def list_buckets(self, document: Document) -> Array:
        """The distinct buckets of a document's tokens, sorted."""
        text, rule = self.reader.prepare(document)
        return self.hasher.encode([text], rule)[1]
