"""From texts to counts and scores: documents, tokens, token counts, and the models that score them."""
