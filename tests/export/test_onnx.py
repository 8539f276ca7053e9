"""Models as ONNX graphs: onnxruntime answers as the model does."""

from functools import partial

import numpy as np
import pytest

import priory as pr
from priory import families as f
from priory import naive_bayes as nb
from priory.errors import DataError

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)  # corrections have no ONNX form

pytestmark = pytest.mark.onnx
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

RNG = np.random.default_rng(3)
LABELS = np.array(["no", "yes", "perhaps"])[RNG.integers(0, 3, 200)]
SHIFT = np.searchsorted(["no", "perhaps", "yes"], LABELS)[:, None]
NUMBERS = (RNG.normal(size=(200, 3)) + SHIFT) * [1.0, 100.0, 1e-3] + [0.0, 1e6, 5.0]
COUNTS = RNG.poisson(1.0 + SHIFT, size=(200, 3))
MIXED = np.column_stack([NUMBERS, COUNTS, RNG.random((200, 1)) < 0.3 * SHIFT + 0.1])
HOLES = np.where(RNG.random(MIXED.shape) < 0.1, np.nan, MIXED)

CASES = [
    (nb.GaussianNB(), NUMBERS),
    (nb.GaussianNB(priors=[0.2, 0.3, 0.5], var_smoothing=0.1), NUMBERS),
    (nb.BernoulliNB(binarize=1.0), COUNTS),
    (nb.BernoulliNB(binarize=None, fit_prior=False), COUNTS > 1),
    (nb.MultinomialNB(alpha=0.5), COUNTS),
    (nb.ComplementNB(norm=True), COUNTS),
    (NaiveBayes("gaussian"), HOLES),
    (NaiveBayes("gaussian", estimate="ml"), HOLES),
    (NaiveBayes("gaussian", estimate="ml"), np.where(SHIFT == 0, np.nan, NUMBERS)),  # a class without any cell
    (NaiveBayes("histogram", class_prior="uniform"), HOLES),
    (NaiveBayes(estimate="map"), HOLES),
    (NaiveBayes(f.Bernoulli, estimate="mean"), COUNTS > 1),
    (NaiveBayes(f.Poisson(1.0, 1.0), estimate="mean"), COUNTS),
]


def answered(model, X):
    session = onnxruntime.InferenceSession(pr.to_onnx(model).SerializeToString())
    return session.run(["label", "probabilities"], {"X": np.asarray(X, dtype=float)})


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c[0])[:60])
@pytest.mark.parametrize("labels", [LABELS, SHIFT[:, 0] * 10, LABELS == "no"], ids=["strings", "numbers", "truth"])
def test_onnxruntime_answers_as_the_model_does(case, labels):
    model, X = case
    if getattr(model, "priors", None) is not None and labels.dtype == bool:
        pytest.skip("three probabilities for two classes")
    model.fit(X, labels)
    label, probabilities = answered(model, X)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-9, atol=1e-12)
    second, first = np.sort(probabilities, axis=1)[:, -2:].T
    sure = first - second > 1e-9
    assert sure.mean() > 0.9
    assert label[sure].tolist() == model.predict(X)[sure].tolist()


def test_a_cell_that_no_class_can_hold_answers_with_the_prior():
    model = NaiveBayes("bernoulli").fit(COUNTS > 1, LABELS)
    rows = np.array([[7.0, 1.0, 0.0], [np.nan, 1.0, 0.0]])
    _, probabilities = answered(model, rows)
    np.testing.assert_allclose(probabilities[0], model.class_count_ / 200)
    np.testing.assert_allclose(probabilities, model.predict_proba(rows))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            pr.TextClassifier().fit(["a b c"], ["x"]),
            "a TextClassifier cannot be exported to ONNX, which has no operator that splits texts as it does; use its",
        ),
        (NaiveBayes("gamma").fit(np.abs(NUMBERS), LABELS), "Gamma cannot be exported to ONNX; declare another family"),
        (NaiveBayes("poisson").fit(COUNTS, LABELS), "integrated out cannot be exported to ONNX: set_params"),
        (nb.BernoulliNB(alpha=0.0).fit([[1], [0]], [0, 1]), "use an alpha above 0"),
    ],
    ids=["text", "gamma", "poisson", "certain"],
)
def test_what_onnx_cannot_say_is_refused(model, message):
    with pytest.raises(DataError) as error:
        pr.to_onnx(model)
    assert message in str(error.value)


def test_what_changes_the_answers_is_not_left_out_silently():
    model = nb.GaussianNB().fit(NUMBERS, LABELS)
    model.corrections_ = np.ones(3)
    with pytest.raises(DataError, match="corrections cannot be exported to ONNX"):
        pr.to_onnx(model)


def test_corrections_that_are_derived_when_they_are_needed_are_not_left_out_either():
    model = pr.NaiveBayes().fit(NUMBERS, LABELS).forget(NUMBERS[:2], LABELS[:2])
    with pytest.raises(DataError, match=r"corrections cannot be exported to ONNX; export model\.without_corrections"):
        pr.to_onnx(model)
    assert pr.to_onnx(pr.NaiveBayes("gaussian").fit(NUMBERS, LABELS).without_corrections())
