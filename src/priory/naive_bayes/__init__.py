"""Naive Bayes classifiers for arrays, one to a module: scikit-learn's five, and two more.

Each remembers sufficient statistics and nothing else (``statistics_``); every other attribute is a function of them.
"""

from priory.naive_bayes.bernoulli import BernoulliNB
from priory.naive_bayes.categorical import CategoricalNB
from priory.naive_bayes.gaussian import GaussianNB
from priory.naive_bayes.multinomial import ComplementNB, DocumentAverageNB, MultinomialNB
from priory.naive_bayes.multivariate import GaussianBayes

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "DocumentAverageNB",
    "GaussianBayes",
    "GaussianNB",
    "MultinomialNB",
]
