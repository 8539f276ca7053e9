"""The membership audit: what the answers of a model give away about the rows it has learned."""

import json

import numpy as np
import pytest

import priory as pr
from priory.cli import main
from priory.errors import StaleModelError
from priory.evaluation.membership import MembershipAudit


def make_noise(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{"a": a, "b": b} for a, b in rng.integers(0, 1000, (n, 2)).tolist()], rng.choice(["x", "y"], n).tolist()


def test_scores_that_do_not_differ_reveal_nothing():
    scores = np.random.default_rng(0).normal(size=2000)
    audit = MembershipAudit.of(scores[None], scores)
    assert audit.area.value == pytest.approx(0.5)
    assert audit.caught <= 0.001
    assert audit.list_exposed() == []


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    rng = np.random.default_rng(1)
    inside, outside = rng.normal(1, 1, (3, 40)), rng.normal(0, 1, 40)
    inside[0, :20] = np.nan
    pairs = [i > o for i in inside[np.isfinite(inside)] for o in outside]
    assert MembershipAudit.of(inside, outside).area.value == pytest.approx(np.mean(pairs))


def test_uncorrected_answers_are_audited_exactly():
    X, y = make_noise(60)
    model = pr.NaiveBayes(calibrate=False).fit(X, y)
    audit, classes = model.audit_membership(X, y), model.classes_.tolist()
    gains = []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        without = pr.NaiveBayes(calibrate=False).fit(X[:i] + X[i + 1 :], y[:i] + y[i + 1 :])
        column = classes.index(label)
        gains.append((model.predict_log_proba([x]) - without.predict_log_proba([x]))[0, column])
    assert np.sort(audit.exposure) == pytest.approx(np.sort(gains), abs=1e-9)


def test_a_row_that_stands_alone_is_exposed_and_more_rows_reveal_less():
    rng = np.random.default_rng(2)
    X, y = [{"a": str(v)} for v in rng.integers(0, 3, 80)], rng.choice(["x", "y"], 80).tolist()
    few = pr.NaiveBayes(calibrate=False, alpha=0.01).fit([*X, {"a": "rare"}], [*y, "x"])
    audit = few.audit_membership([*X, {"a": "rare"}], [*y, "x"])
    assert audit.list_exposed()[0][1] > 3  # twice the odds
    small, large = (pr.NaiveBayes().fit(*make_noise(n)).audit_membership().area.value for n in (40, 800))
    assert large < max(small, 0.6)


def test_the_command_audits_the_rows_that_a_file_keeps(tmp_path, capsys):
    X, y = make_noise(80)
    pr.save(pr.NaiveBayes().fit(X, y), tmp_path / "m.priory")
    assert main(["inspect", str(tmp_path / "m.priory"), "--privacy"]) == 0
    assert "AUC of the attack" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "m.priory"), "--privacy", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 80
    assert 0.3 < found["auc"]["value"] < 0.8
    pr.save(pr.NaiveBayes(memory=0).fit(X, y), tmp_path / "none.priory")
    assert main(["inspect", str(tmp_path / "none.priory"), "--privacy"]) == 3
    assert "keeps no rows" in capsys.readouterr().err
    with pytest.raises(StaleModelError):
        pr.NaiveBayes(memory=0).fit(X, y).audit_membership()
