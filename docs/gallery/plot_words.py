"""
P(word | class) of all words
============================

A line for each word of the vocabulary; the words that stand out are named.
"""

from priory import TextClassifier, plots
from priory.data import inbox

mail, labels = inbox()
model = TextClassifier.textbook("multinomial").fit([message["text"] for message in mail], labels)
figure = plots.word_probabilities(model)
