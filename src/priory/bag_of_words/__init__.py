"""Texts as bags of words: documents, tokens, counts of tokens, and the models that score them."""
