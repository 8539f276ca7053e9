"""Models in MLflow: saved, logged, loaded as what they were, and asked through pyfunc."""

import numpy as np
import pandas as pd
import pytest

import priory as pr
from priory import inbox
from priory.workflows import mlflow as priory_mlflow

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of MLflow and of what it imports

EMAILS, LABELS = inbox()
TABLE = pd.DataFrame(EMAILS)[["sender", "hour", "links"]]


@pytest.fixture(scope="module")
def model():
    return pr.NaiveBayes(calibrate=False).fit(TABLE, LABELS)


def test_a_saved_model_is_loaded_as_what_it_was(model, tmp_path):
    priory_mlflow.save_model(model, tmp_path / "saved")
    loaded = priory_mlflow.load_model(str(tmp_path / "saved"))
    assert np.array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))
    assert loaded.forget(TABLE[:10], LABELS[:10]).class_count_.sum() == len(TABLE) - 10


def test_pyfunc_answers_as_the_model_does(model, tmp_path):
    signature = mlflow.models.infer_signature(TABLE)
    priory_mlflow.save_model(model, tmp_path / "saved", predict_method="predict_proba", signature=signature)
    answers = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(TABLE)
    assert np.array_equal(answers, model.predict_proba(TABLE))


def test_texts_are_answered_through_pyfunc(tmp_path):
    texts = [email["text"] for email in EMAILS]
    model = pr.TextClassifier(calibrate=False).fit(texts, LABELS)
    priory_mlflow.save_model(model, tmp_path / "saved")
    answers = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(pd.DataFrame({"text": texts[:20]}))
    assert answers.tolist() == model.predict(texts[:20]).tolist()


@pytest.mark.slow
def test_a_logged_model_is_found_by_its_address(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run():
        logged = priory_mlflow.log_model(model, "filter")
    loaded = priory_mlflow.load_model(logged.model_uri)
    assert np.array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))
    assert mlflow.pyfunc.load_model(logged.model_uri).predict(TABLE[:5]).tolist() == model.predict(TABLE[:5]).tolist()
