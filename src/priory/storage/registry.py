"""What a model file can hold: a closed list of names. A file says the name; only this list says what it stands for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

ESTIMATOR_PATHS = {
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

FAMILY_PATHS = {
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

STATISTICS_PATHS = {
    "Buckets": "priory.bag_of_words.hashed_counts.HashedCounts",
    "Events": "priory.families.poisson.PoissonStatistics",
    "Moments": "priory.families.gaussian.Moments",
    "Occurrences": "priory.naive_bayes.multinomial.Occurrences",
    "OccurrencesAndPresence": "priory.bag_of_words.token_counts.OccurrencesAndPresence",
    "Positives": "priory.families.gamma.GammaStatistics",
    "Products": "priory.regression.cross_products.CrossProducts",
    "Scatter": "priory.families.multivariate_gaussian.Scatter",
    "Seen": "priory.models.model_statistics.ModelStatistics",
    "Successes": "priory.families.binomial.BinomialStatistics",
    "Tally": "priory.families.value_counts.ValueCounts",
    "TokenCounts": "priory.families.multinomial.MultinomialStatistics",
    "Trials": "priory.families.bernoulli.BernoulliStatistics",
    "Words": "priory.bag_of_words.token_counts.TokenCounts",
}

CORRECTION_PATHS = {
    "Corrections": "priory.calibration.stacking.Corrections",
    "Encoding": "priory.calibration.feature_encoding.TableEncoding",
    "Honest": "priory.calibration.stacking.OutOfFoldAnswers",
    "Pairs": "priory.calibration.aode.PairCounts",
    "Scale": "priory.calibration.feature_encoding.ColumnEncoding",
    "Tempering": "priory.calibration.tempering.Tempering",
    "Voice": "priory.calibration.stacking.StackMember",
}

DECLARATION_PATHS = {
    "Block": "priory.models.schema.ColumnBlock",
    "Diagnostics": "priory.regression.mcmc.Diagnostics",
    "Laplace": "priory.regression.logistic_posterior.LaplaceApproximation",
    "NormalInverseGamma": "priory.regression.linear_posterior.NormalInverseGamma",
    "Schema": "priory.models.schema.Schema",
    "Term": "priory.regression.cross_products.Term",
    "Tokens": "priory.bag_of_words.tokenizer.Tokenizer",
}

CURRENT_NAMES = {  # fields, parameters and attributes that files of format 1 call otherwise
    "Corrections": {"voices": "members", "honest": "out_of_fold"},
    "Scale": {"marks": "edges_or_labels"},
    "Text": {"tokens": "tokenizer"},
    "TextClassifier": {
        "unit": "analyzer",
        "least": "min_token_length",
        "ngrams": "ngram_range",
        "extra": "extra_tokens",
        "most": "max_tokens",
    },
    "Tokens": {"unit": "analyzer", "least": "min_token_length", "ngrams": "ngram_range", "extra": "extra_tokens"},
}

RECORD_PATHS = {**FAMILY_PATHS, **STATISTICS_PATHS, **CORRECTION_PATHS, **DECLARATION_PATHS}
NOTES_ATTRIBUTE = "notes"  # the attribute of a model for what its file holds beside it
STORED_NAMES = {path: name for name, path in {**RECORD_PATHS, **ESTIMATOR_PATHS}.items()}


def find_stored_name(kind: type) -> str:
    """The name a class has in files; empty if it has none."""
    return STORED_NAMES.get(f"{kind.__module__}.{kind.__qualname__}", "")


@cache
def import_stored_class(name: str) -> Any:
    """The class behind a name of the list."""
    module, attribute = {**RECORD_PATHS, **ESTIMATOR_PATHS}[name].rsplit(".", 1)
    return getattr(import_module(module), attribute)


def collect_learned_attributes(model: Any) -> dict[str, Any]:
    """What an estimator holds beside its parameters."""
    parameters = model.get_params(deep=False)
    return {name: value for name, value in vars(model).items() if name not in parameters and name != NOTES_ATTRIBUTE}


def use_current_names(stored_name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Fields or attributes of a stored object under the names they have today."""
    current = {"seen_": "statistics_", **CURRENT_NAMES.get(stored_name, {})}
    return {current.get(name, name): value for name, value in values.items()}
