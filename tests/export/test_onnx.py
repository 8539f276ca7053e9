"""Models as ONNX graphs: onnxruntime answers as the model does."""

from functools import partial

import numpy as np
import pytest

import priory as pr
from exported_models import make_model, make_rows
from priory import families as f
from priory import naive_bayes as nb
from priory import workflows
from priory.errors import DataError

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)

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
    (nb.CategoricalNB(), COUNTS),
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


@pytest.mark.parametrize("family", ["gamma", "poisson"])
def test_what_is_integrated_out_has_a_formula_too(family):
    X = np.abs(NUMBERS) if family == "gamma" else COUNTS
    model = NaiveBayes(family).fit(X, LABELS)
    asked = np.concatenate([X[:50], [[np.nan, 3.0, 1e9], [-1.0, 2.5, 0.0]]])
    # the shape of the third column is 25 million: its terms are as large, and round as much
    np.testing.assert_allclose(answered(model, asked)[1], model.predict_proba(asked), rtol=1e-6, atol=1e-7)


def feed(model, rows):
    """The inputs of a graph with one input for each column."""
    from priory.export.plan_sources import compile_plan
    from priory.text.tokenizer import find_token_spans

    plan, inputs = compile_plan(model), {}
    for column in plan.columns:
        cells = [row.get(column.name) for row in rows]
        if column.kind == "number":
            inputs[column.name] = np.array([[np.nan if x is None else x] for x in cells], dtype=float)
        elif column.kind == "label":
            inputs[column.name] = np.array([[x or ""] for x in cells], dtype=object)
        else:
            split = [[t for t, _, _ in find_token_spans(x or "", plan.tokens[0].tokenizer)] for x in cells]
            width = max(map(len, split))
            inputs[column.name] = np.array([[*words, *[""] * (width - len(words))] for words in split], dtype=object)
            inputs[f"{column.name} letters"] = np.array([[len(x or "")] for x in cells], dtype=float)
    return inputs


@pytest.mark.parametrize("calibrate", ["loo", False])
@pytest.mark.parametrize("name", ["far", "mixed", "numbers", "labels"])
def test_default_models_of_numbers_and_labels(name, calibrate):
    model, (asked, rows) = make_model(name, calibrate), make_rows(name)
    session = onnxruntime.InferenceSession(pr.to_onnx(model).SerializeToString())
    inputs = feed(model, rows)
    if name in ("far", "numbers"):
        inputs = {"X": np.concatenate([*inputs.values()], axis=1)}
    _, found = session.run(None, inputs)
    np.testing.assert_allclose(found, model.predict_proba(asked), atol=1e-9)
    whole = {key: value[:1] for key, value in inputs.items()}  # no row with a gap
    np.testing.assert_allclose(session.run(None, whole)[1], model.predict_proba(asked[:1]), atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"calibrate": False}, {"model": "multinomial"}])
def test_texts_are_given_as_tokens(options):
    texts, labels = ["win cash now", "lunch at noon", "cash prize win", "see you at lunch"] * 8, ["spam", "ham"] * 16
    model = pr.TextClassifier(**{"pairs": False, **options}).fit(texts, labels)
    asked = ["win a prize", "noon", "", "unknown", "lunch lunch " * 20]
    session = onnxruntime.InferenceSession(pr.to_onnx(model).SerializeToString())
    _, found = session.run(None, feed(model, [{"text": text} for text in asked]))
    np.testing.assert_allclose(found, model.predict_proba(asked), atol=1e-9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            pr.TextClassifier(pairs=True).fit(["aa bb cc", "bb cc aa", "dd ee ff", "ee ff dd"] * 9, list("xxyy") * 9),
            "pairs=False",
        ),
        (pr.TextClassifier(buckets=32).fit(["a b c", "d e f"], ["x", "y"]), "hashed words"),
        (pr.NaiveBayes().fit([{"a": ""}, {"a": "x"}] * 10, [0, 1] * 10), "the label ''"),
        (nb.BernoulliNB(alpha=0.0).fit([[1], [0]], [0, 1]), "use an alpha above 0"),
    ],
    ids=["pairs", "buckets", "empty", "certain"],
)
def test_what_onnx_cannot_say_is_refused(model, message):
    with pytest.raises(DataError) as error:
        pr.to_onnx(model)
    assert message in str(error.value)


def test_what_changes_the_answers_is_not_left_out_silently():
    model = nb.GaussianNB().fit(NUMBERS, LABELS)
    model.corrections_ = np.ones(3)
    with pytest.raises(DataError, match="corrections of this class cannot be exported"):
        pr.to_onnx(model)


def test_corrections_that_are_derived_when_they_are_needed_are_exported():
    model = pr.NaiveBayes().fit(NUMBERS, LABELS).forget(NUMBERS[:2], LABELS[:2])
    np.testing.assert_allclose(answered(model, HOLES[:, :3])[1], model.predict_proba(HOLES[:, :3]), atol=1e-9)


def test_a_graph_without_training_rows_holds_none():
    onnx = pytest.importorskip("onnx")
    kept = {}
    for with_rows in (True, False):
        graph = onnx.load_from_string(
            workflows.export(make_model("mixed", "loo"), "onnx", with_rows=with_rows).files["onnx"]
        ).graph
        kept[with_rows] = any(node.op_type == "TopK" for node in graph.node)
    assert kept == {True: True, False: False}
