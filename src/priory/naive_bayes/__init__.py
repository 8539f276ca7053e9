"""Naive Bayes classifiers for arrays: scikit-learn's five, and two more.

Each remembers sufficient statistics and nothing else (``statistics_``); every other attribute is a function of them.
"""

from priory.naive_bayes.counts import ComplementNB, DocumentAverageNB, MultinomialNB
from priory.naive_bayes.discrete_values import BernoulliNB, CategoricalNB
from priory.naive_bayes.gaussians import GaussianBayes, GaussianNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "DocumentAverageNB",
    "GaussianBayes",
    "GaussianNB",
    "MultinomialNB",
]
