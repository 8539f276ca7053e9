"""Scoring plans: a walk in plain NumPy answers as the model does."""

import numpy as np
import pytest

import priory as pr
from exported_models import TABLES, make_model, make_rows, make_text_model
from plan_walk import answer
from priory.core.value_counts import round_to_bits
from priory.errors import DataError
from priory.export.plan_sources import compile_plan
from priory.export.scoring_plan import find_thresholds

TEXTS = [
    "win cash now",
    "lunch at noon?",
    "cash prize, win!",
    "see you at lunch",
    "win a prize",
    "noon then",
    "Ünï win",
    "",
]
LABELS = ["spam", "ham"] * 4


@pytest.mark.parametrize("calibrate", ["loo", False])
@pytest.mark.parametrize("name", sorted(set(TABLES) - {"dates"}))
def test_a_walk_answers_as_the_model_does(name, calibrate):
    model, (asked, rows) = make_model(name, calibrate), make_rows(name)
    np.testing.assert_allclose(answer(compile_plan(model), rows), model.predict_proba(asked), atol=1e-9)


def test_a_declared_prior_is_part_of_the_plan():
    asked, rows = make_rows("labels")
    model = pr.NaiveBayes(class_prior="uniform").fit(*TABLES["labels"]())
    np.testing.assert_allclose(answer(compile_plan(model), rows), model.predict_proba(asked), atol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"pairs": True}, {"calibrate": False}, {"model": "bernoulli", "calibrate": False}]
)
def test_texts_are_walked_too(options):
    model = pr.TextClassifier(**options).fit(TEXTS * 5, LABELS * 5)
    asked = ["win the prize", "lunch", "", "unknown", "Win WIN win cash"]
    found = answer(compile_plan(model), [{"text": text} for text in asked])
    np.testing.assert_allclose(found, model.predict_proba(asked), atol=1e-9)


def test_characters_of_words_are_walked_too():
    model, texts = make_text_model()
    found = answer(compile_plan(model), [{"text": text} for text in [*texts, "", "other"]])
    np.testing.assert_allclose(found, model.predict_proba([*texts, "", "other"]), atol=1e-9)


def test_a_table_with_texts_and_gaps():
    rows = [{"text": text, "n": float(i), "k": "xy"[i % 2]} for i, text in enumerate(TEXTS[:7] * 6)]
    rows = [{**row, "text": f"{row['text']} number {i} of many"} for i, row in enumerate(rows)]
    model = pr.NaiveBayes().fit(rows, (LABELS * 6)[: len(rows)])
    asked = [rows[0], {**rows[1], "n": None}, {**rows[2], "text": "", "k": None}, {**rows[3], "text": ""}]
    np.testing.assert_allclose(answer(compile_plan(model), asked), model.predict_proba(asked), atol=1e-9)


def test_without_training_rows_members_read_gaps():
    model, (_, rows) = make_model("mixed", "loo"), make_rows("mixed")
    plan = compile_plan(model, with_rows=False)
    assert not len(plan.gaps.weight)
    assert not plan.gaps.cells
    assert np.isfinite(answer(plan, rows)).all()


def test_thresholds_need_no_rounding():
    edges = np.array([-1.5, 0.1, 3.0, 1e300])
    found = find_thresholds(edges, lambda x: round_to_bits(x, 10))
    below = np.nextafter(found, -np.inf)
    assert (round_to_bits(found, 10) >= edges).all()
    assert (round_to_bits(below, 10) < edges).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: pr.TextClassifier(buckets=64).fit(TEXTS, LABELS), "hashed words"),
        (lambda: pr.TextClassifier(reader="mail", calibrate=False).fit(TEXTS, LABELS), "stems and mail"),
        (lambda: pr.BayesianLinearRegression().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), "cannot be exported"),
    ],
    ids=["buckets", "mail", "regression"],
)
def test_what_has_no_plan_is_refused_in_one_line(model, message):
    with pytest.raises(DataError, match=message) as error:
        compile_plan(model())
    assert "\n" not in str(error.value)
