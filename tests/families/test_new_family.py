"""A family that is defined in one file (tests/toy_family.py) can do everything that priory's own families can."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import quad

import priory as pr
from paths import ROOT
from priory.cli.entry_point import main
from priory.core.registration import BY_CLASS, BY_NAME, register_record
from priory.errors import DataError, ModelFileError, NotLearnedError
from priory.families.registry import auto_candidates, families_by_name
from shell import write
from toy_family import Exponential, ExponentialStatistics

RNG = np.random.default_rng(3)
LABELS = np.array(["fast", "slow"])[np.arange(200) % 2]
WAITS = RNG.exponential(np.where(LABELS == "fast", 1.0, 6.0))
ROWS = [{"wait": wait, "desk": desk} for wait, desk in zip(WAITS, RNG.choice(["a", "b"], 200), strict=True)]


# Other tests in this process must not see the family: it is registered only while a test of this file runs.
REGISTERED = [r for r in BY_NAME.values() if r.cls.__module__ == "toy_family"]
for registration in REGISTERED:
    del BY_NAME[registration.name], BY_CLASS[registration.cls]


@pytest.fixture(autouse=True)
def register_toy_family(monkeypatch):
    for registration in REGISTERED:
        monkeypatch.setitem(BY_NAME, registration.name, registration)
        monkeypatch.setitem(BY_CLASS, registration.cls, registration)


@pytest.fixture
def model():
    return pr.NaiveBayes({"wait": "exponential"}, calibrate=False).fit(ROWS, LABELS)


def test_the_documentation_shows_the_file():
    page = (ROOT / "docs" / "adding-a-family.md").read_text()
    assert (ROOT / "tests" / "toy_family.py").read_text() in page


def test_it_is_a_density_with_its_conjugate_prior():
    belief = Exponential(2.0, 3.0)
    assert quad(lambda x: float(np.exp(belief.log_predictive(x))), 0, np.inf)[0] == pytest.approx(1.0)
    seen = belief.observe([0.5, 2.5])
    assert float(belief.ml(seen)) == pytest.approx(2 / 3)
    assert float((belief + seen).mean()) == pytest.approx((2 + 2) / (3 + 3))
    chain = belief.log_predictive(0.5) + (belief + belief.observe([0.5])).log_predictive(2.5)
    assert float(belief.log_evidence(seen)) == pytest.approx(float(chain))


def test_it_is_declared_by_name_and_only_a_candidate_of_auto_if_it_says_so():
    assert families_by_name()["exponential"] is Exponential
    assert Exponential not in auto_candidates("number")


def test_it_is_learned_and_used(model):
    assert model.schema_["wait"].family == "Exponential"
    assert model.score(ROWS, LABELS) > 0.75


def test_learning_in_parts_merging_and_forgetting_give_the_same_model(model):
    first = pr.NaiveBayes({"wait": "exponential"}, calibrate=False).fit(ROWS[:150], LABELS[:150])
    rest = pr.NaiveBayes({"wait": "exponential"}, calibrate=False).fit(ROWS[150:], LABELS[150:])
    expected = model.predict_log_proba(ROWS)
    np.testing.assert_allclose((first + rest).predict_log_proba(ROWS), expected)
    np.testing.assert_allclose(first.partial_fit(ROWS[150:], LABELS[150:]).predict_log_proba(ROWS), expected)
    forgotten = model.forget(ROWS[150:], LABELS[150:]).predict_log_proba(ROWS)
    fresh = pr.NaiveBayes({"wait": "exponential"}, calibrate=False).fit(ROWS[:150], LABELS[:150])
    np.testing.assert_allclose(forgotten, fresh.predict_log_proba(ROWS))
    with pytest.raises(NotLearnedError):
        model.forget([{"wait": -1.0, "desk": "a"}], ["fast"])


def test_it_is_explained(model):
    [ledger] = model.explain([{"wait": 0.1, "desk": "a"}])
    assert "wait" in str(ledger)
    assert ledger.winner == "fast"


def test_it_is_saved_loaded_and_inspected(model, tmp_path):
    path = tmp_path / "waits.priory"
    pr.save(model, path)
    np.testing.assert_array_equal(pr.load(path).predict_log_proba(ROWS), model.predict_log_proba(ROWS))
    assert pr.storage.inspect(path).columns["wait"] == ["Exponential"]
    assert "WaitingTimes" in str(pr.storage.inspect(path))


def test_a_declared_prior_is_saved_too(tmp_path):
    path = tmp_path / "waits.priory"
    pr.save(pr.NaiveBayes({"wait": Exponential(2.0, 5.0)}).fit(ROWS, LABELS), path)
    assert pr.load(path).families == {"wait": Exponential(2.0, 5.0)}


def test_records_that_it_finds_fault_with_are_refused(model, tmp_path):
    records = [r for block in model.statistics_.parts for r in block]
    [record] = [r for r in records if isinstance(r, ExponentialStatistics)]
    object.__setattr__(record, "total", -record.total)
    with pytest.raises(ModelFileError, match="is not a valid WaitingTimes: a total is negative"):
        pr.save(model, tmp_path / "waits.priory")


def test_a_file_does_not_import_the_module_of_a_family(model, tmp_path):
    """Whoever loads the file must have imported the family; nothing in the file says where it is defined."""
    path = tmp_path / "waits.priory"
    pr.save(model, path)
    code = f"import priory as pr; print(pr.storage.inspect({str(path)!r}).columns); pr.load({str(path)!r})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "'wait': ['Exponential']" in run.stdout
    assert run.stderr.splitlines()[-1].endswith(
        f"{path}: this version does not know 'Exponential'; if it is a class of your own, import it first."
    )


def test_a_name_that_another_class_has_is_refused():
    with pytest.raises(ValueError, match=r"cannot register .* as 'Words': .*TokenCounts has this name; choose another"):
        register_record("Words")(ExponentialStatistics)


def test_the_command_line_trains_predicts_and_explains_with_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("waits.csv", ["speed", "wait"], [(label, wait) for label, wait in zip(LABELS, WAITS, strict=True)])
    assert main(["train", "waits.csv", "--target", "speed", "--type", "wait=exponential"]) == 0
    assert main(["inspect", "waits.priory", "--json"]) == 0
    capsys.readouterr()
    assert main(["inspect", "waits.priory", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == {"wait": ["Exponential"]}
    assert main(["predict", "waits.priory", "waits.csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 200
    assert main(["train", "--help"]) == 0
    assert "exponential" in capsys.readouterr().out


def test_the_command_line_says_which_values_it_accepts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("waits.csv", ["speed", "wait"], [("fast", 1.0), ("slow", -2.0)])
    assert main(["train", "waits.csv", "--target", "speed", "--type", "wait=exponential"]) != 0
    assert "-2 is impossible for exponential, which takes numbers from 0" in capsys.readouterr().err


def test_a_name_that_is_not_a_family_is_refused_with_those_that_are():
    with pytest.raises(DataError, match="exponential, gamma, gaussian"):
        pr.NaiveBayes({"wait": "exponental"}).fit(ROWS, LABELS)
