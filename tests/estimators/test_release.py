"""Private releases: noise from an exact distribution, over declared domains, in an ordinary model."""

import json
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import priory as pr
from priory.cli import main
from priory.errors import DataError, NotLearnedError
from priory.learning.release import Noise

DOMAINS = {"age": (0, 100), "city": ["Ulm", "Bonn", "Jena"]}


def make_people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    bought = rng.choice(["yes", "no"], n)
    age = np.clip(np.where(bought == "yes", 30, 60) + rng.normal(0, 10, n), 0, 100).round()
    return pd.DataFrame({"age": age, "city": rng.choice(["Ulm", "Bonn"], n)}), bought


@pytest.fixture(scope="module")
def model():
    return pr.NaiveBayes().fit(*make_people())


def release(model, epsilon, seed=0, **more):
    given = {"domains": DOMAINS, "classes": ["yes", "no"], "source": random.Random(seed), **more}
    return model.release(epsilon, **given)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_noise_has_the_discrete_laplace_distribution(epsilon):
    noise, n = Noise(random.Random(0)), 6000
    found = Counter(noise.draw(epsilon) for _ in range(n))
    q = math.exp(-float(epsilon))
    for z in range(-2, 3):
        p = (1 - q) / (1 + q) * q ** abs(z)
        assert abs(found[z] / n - p) < 4 * math.sqrt(p * (1 - p) / n)
    assert min(found) < 0 < max(found)


def test_a_release_answers_nearly_as_the_model_does(model):
    X, y = make_people(seed=1)
    private = release(model, 3)
    assert (private.predict(X) == y).mean() > 0.85
    assert private.released_ == (3.0,)
    assert np.allclose(private.predict_proba(X).sum(axis=1), 1)
    assert private.statistics_.sample is None


def test_little_budget_leaves_the_base_rate():
    X, y = make_people(150)
    model, (other, truth) = pr.NaiveBayes().fit(X, y), make_people(seed=2)
    losses = []
    for seed in range(10):
        p = release(model, 0.05, seed).predict_log_proba(other)
        losses.append(-p[np.arange(len(truth)), np.searchsorted(["no", "yes"], truth)].mean())
    assert np.median(losses) < math.log(2) + 0.1


def test_a_release_is_saved_merged_and_learns_but_cannot_forget(model, tmp_path):
    X, y = make_people()
    private = release(model, 1)
    pr.save(private, tmp_path / "private.priory")
    loaded = pr.load(tmp_path / "private.priory")
    assert loaded.released_ == (1.0,)
    assert np.array_equal(loaded.predict_proba(X), private.predict_proba(X))
    found = pr.storage.inspect(tmp_path / "private.priory")
    assert found.kept_rows == 0
    assert "released  with noise, epsilon 1" in str(found)
    assert (loaded + private).released_ == (1.0, 1.0)
    loaded.partial_fit(X[:5], y[:5])
    for forget in (lambda: loaded.forget(X[:5], y[:5]), lambda: loaded.forget_one(X.iloc[0].to_dict(), y[0])):
        with pytest.raises(NotLearnedError, match="have noise, so that no row can be forgotten"):
            forget()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"domains": {"age": (0, 100)}}, "column 'city' has no declared domain"),
        ({"domains": {**DOMAINS, "age": [1]}}, "give its bounds"),
        ({"domains": {**DOMAINS, "age": (5, 5)}}, "give its bounds"),
        ({"domains": {**DOMAINS, "age": (-1e308, 1e308)}}, "give its bounds"),
        ({"domains": {**DOMAINS, "age": ("0", "100")}}, "give its bounds"),
        ({"domains": {**DOMAINS, "city": "Ulm"}}, "a list of its possible labels"),
        ({"domains": {**DOMAINS, "city": ["Ulm", 1]}}, "a list of its possible labels"),
        ({"domains": None}, "no declared domain"),
        ({"classes": ["yes"]}, "classes are not declared"),
        ({"classes": "yes"}, "classes are not declared"),
        *(({"epsilon": epsilon}, "give a number from") for epsilon in (0, math.inf, math.nan, 1e-300, "1", None)),
    ],
)
def test_what_is_not_declared_is_refused(model, given, problem):
    with pytest.raises(DataError, match=problem):
        release(model, **{"epsilon": 1, **given})


def test_texts_weights_and_families_without_counts_are_refused():
    X, y = make_people(60)
    notes = [f"a note of several words, number {i} of many" for i in range(60)]
    with pytest.raises(DataError, match="column 'note'"):
        release(pr.NaiveBayes().fit(X.assign(note=notes), y), 1)
    with pytest.raises(DataError, match="every row counts once"):
        release(pr.NaiveBayes().fit(X, y, sample_weight=np.full(60, 0.5)), 1)
    with pytest.raises(DataError, match="release the model that was released"):
        release(release(pr.NaiveBayes().fit(X, y), 3), 0.1)  # the rows have lost 3 already
    with pytest.raises(DataError, match="no counts of values"):
        release(pr.NaiveBayes({"age": "gaussian"}).fit(X, y), 1)


def test_labels_and_classes_outside_the_domain_are_not_released():
    X, y = make_people(200)
    X.loc[0, "city"], y = "Atlantis", np.where(np.arange(200) == 1, "maybe", y)
    private = release(pr.NaiveBayes().fit(X, y), 5)
    assert private.classes_.tolist() == ["no", "yes"]
    assert "Atlantis" not in private.categories_["city"].tolist()


def test_the_command_releases_a_file(model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.target_ = "bought"
    pr.save(model, "people.priory")
    (tmp_path / "domains.json").write_text(json.dumps({**DOMAINS, "bought": ["yes", "no"]}))
    command = ["release", "people.priory", "-o", "public.priory", "--epsilon", "1", "--domains"]
    assert main([*command, "domains.json"]) == 0
    assert "a release with epsilon 1" in capsys.readouterr().out
    assert pr.load("public.priory").target_ == "bought"
    (tmp_path / "few.json").write_text(json.dumps(DOMAINS))
    assert main([*command, "few.json", "--force"]) == 3
    assert "add a list of them as 'bought'" in capsys.readouterr().err
