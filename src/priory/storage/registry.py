"""What a model file can hold: a closed list of names. A file says the name; only this list says what it stands for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

ESTIMATORS = {
    "NaiveBayes": "priory.estimators.naive_bayes.NaiveBayes",
    "TextClassifier": "priory.estimators.text_classifier.TextClassifier",
    "BernoulliNB": "priory.naive_bayes.bernoulli.BernoulliNB",
    "CategoricalNB": "priory.naive_bayes.categorical.CategoricalNB",
    "ComplementNB": "priory.naive_bayes.multinomial.ComplementNB",
    "GammaNB": "priory.naive_bayes.conjugate.GammaNB",
    "GaussianBayes": "priory.naive_bayes.multivariate.GaussianBayes",
    "GaussianNB": "priory.naive_bayes.gaussian.GaussianNB",
    "MultinomialNB": "priory.naive_bayes.multinomial.MultinomialNB",
    "PoissonNB": "priory.naive_bayes.conjugate.PoissonNB",
    "BayesianLinearRegression": "priory.regression.linear_regression.BayesianLinearRegression",
    "BayesianLogisticRegression": "priory.regression.logistic_regression.BayesianLogisticRegression",
}

FAMILIES = {
    "Bernoulli": "priory.families.bernoulli.Bernoulli",
    "Binomial": "priory.families.binomial.Binomial",
    "Categorical": "priory.families.categorical.Categorical",
    "Gamma": "priory.families.gamma.Gamma",
    "Gaussian": "priory.families.gaussian.Gaussian",
    "Histogram": "priory.families.histogram.Histogram",
    "Multinomial": "priory.families.multinomial.Multinomial",
    "MultivariateGaussian": "priory.families.multivariate_gaussian.MultivariateGaussian",
    "Poisson": "priory.families.poisson.Poisson",
    "Text": "priory.families.text.Text",
}

STATISTICS = {
    "Buckets": "priory.bag_of_words.hashed_counts.Buckets",
    "Events": "priory.families.poisson.Events",
    "Moments": "priory.families.gaussian.Moments",
    "Occurrences": "priory.naive_bayes.multinomial.Occurrences",
    "Positives": "priory.families.gamma.Positives",
    "Products": "priory.regression.cross_products.Products",
    "Scatter": "priory.families.multivariate_gaussian.Scatter",
    "Seen": "priory.models.naive_bayes.Seen",
    "Successes": "priory.families.binomial.Successes",
    "Tally": "priory.families.value_counts.Tally",
    "TokenCounts": "priory.families.multinomial.Tokens",
    "Trials": "priory.families.bernoulli.Trials",
    "Words": "priory.bag_of_words.token_counts.Words",
}

CORRECTIONS = {
    "Corrections": "priory.calibration.stacking.Corrections",
    "Encoding": "priory.calibration.feature_encoding.Encoding",
    "Honest": "priory.calibration.stacking.Honest",
    "Pairs": "priory.calibration.aode.Pairs",
    "Scale": "priory.calibration.feature_encoding.Scale",
    "Tempering": "priory.calibration.tempering.Tempering",
    "Voice": "priory.calibration.stacking.Voice",
}

DECLARED = {
    "Block": "priory.models.schema.Block",
    "Diagnostics": "priory.regression.mcmc.Diagnostics",
    "Laplace": "priory.regression.logistic_posterior.Laplace",
    "NormalInverseGamma": "priory.regression.linear_posterior.NormalInverseGamma",
    "Schema": "priory.models.schema.Schema",
    "Term": "priory.regression.cross_products.Term",
    "Tokens": "priory.bag_of_words.tokenizer.Tokens",
}

RECORDS = {**FAMILIES, **STATISTICS, **CORRECTIONS, **DECLARED}
NOTES = "notes"  # the attribute of a model for what its file holds beside it
NAMES = {path: name for name, path in {**RECORDS, **ESTIMATORS}.items()}


def name_of(kind: type) -> str:
    """The name a class has in files; empty if it has none."""
    return NAMES.get(f"{kind.__module__}.{kind.__qualname__}", "")


@cache
def class_of(name: str) -> Any:
    """The class behind a name of the list."""
    module, attribute = {**RECORDS, **ESTIMATORS}[name].rsplit(".", 1)
    return getattr(import_module(module), attribute)


def learned_by(model: Any) -> dict[str, Any]:
    """What an estimator holds beside its parameters."""
    parameters = model.get_params(deep=False)
    return {name: value for name, value in vars(model).items() if name not in parameters and name != NOTES}
