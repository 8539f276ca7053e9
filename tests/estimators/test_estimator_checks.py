"""scikit-learn's own checks, over every estimator; none is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory import NaiveBayes, naive_bayes

ESTIMATORS = [NaiveBayes(), *(getattr(naive_bayes, name)() for name in naive_bayes.__all__)]
ESTIMATORS += [naive_bayes.GaussianBayes(covariance="shared"), naive_bayes.ComplementNB(norm=True)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fractions are cut off:priory.errors.PrioryWarning")  # some checks draw them
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)
