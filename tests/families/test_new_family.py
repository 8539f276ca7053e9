"""A family that is defined in one file (tests/toy_family.py) can do everything that priory's own families can."""

import json
import subprocess
import sys

import numpy as np
import pytest

import priory as pr
from paths import ROOT
from priory import plots
from priory.cli.entry_point import main
from priory.core.statistics import BY_CLASS, BY_NAME, register_record
from priory.errors import DataError, ModelFileError, NotLearnedError
from priory.families.base import auto_candidates, families_by_name
from shell import write
from toy_family import Geometric, GeometricStatistics

RNG = np.random.default_rng(3)
LABELS = np.array(["few", "many"])[np.arange(200) % 2]
TRIES = RNG.geometric(np.where(LABELS == "few", 0.6, 0.12)) - 1
ROWS = [{"tries": tries, "desk": desk} for tries, desk in zip(TRIES, RNG.choice(["a", "b"], 200), strict=True)]


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
    return pr.NaiveBayes({"tries": "geometric"}, calibrate=False).fit(ROWS, LABELS)


def test_the_documentation_shows_the_file():
    page = (ROOT / "docs" / "adding-a-family.md").read_text()
    assert (ROOT / "tests" / "toy_family.py").read_text() in page


def test_it_is_a_likelihood_with_its_conjugate_prior():
    belief = Geometric(5.0, 3.0)
    assert np.exp(belief.log_predictive(np.arange(5000))).sum() == pytest.approx(1.0)
    seen = belief.observe([1, 4])
    assert float(belief.ml(seen)) == pytest.approx(2 / 7)
    assert float((belief + seen).mean()) == pytest.approx((5 + 2) / (5 + 3 + 7))
    chain = belief.log_predictive(1) + (belief + belief.observe([1])).log_predictive(4)
    assert float(belief.log_evidence(seen)) == pytest.approx(float(chain))


def test_it_is_declared_by_name_and_only_a_candidate_of_auto_if_it_says_so():
    assert families_by_name()["geometric"] is Geometric
    assert Geometric not in auto_candidates("number")


def test_it_is_learned_and_used(model):
    assert model.schema_["tries"].family == "Geometric"
    assert model.score(ROWS, LABELS) > 0.75


def test_learning_in_parts_merging_and_forgetting_give_the_same_model(model):
    first = pr.NaiveBayes({"tries": "geometric"}, calibrate=False).fit(ROWS[:150], LABELS[:150])
    rest = pr.NaiveBayes({"tries": "geometric"}, calibrate=False).fit(ROWS[150:], LABELS[150:])
    expected = model.predict_log_proba(ROWS)
    np.testing.assert_allclose((first + rest).predict_log_proba(ROWS), expected)
    np.testing.assert_allclose(first.partial_fit(ROWS[150:], LABELS[150:]).predict_log_proba(ROWS), expected)
    forgotten = model.forget(ROWS[150:], LABELS[150:]).predict_log_proba(ROWS)
    fresh = pr.NaiveBayes({"tries": "geometric"}, calibrate=False).fit(ROWS[:150], LABELS[:150])
    np.testing.assert_allclose(forgotten, fresh.predict_log_proba(ROWS))
    with pytest.raises(NotLearnedError):
        model.forget([{"tries": -1.0, "desk": "a"}], ["few"])


def test_it_is_explained(model):
    [ledger] = model.explain([{"tries": 0, "desk": "a"}])
    assert "tries" in str(ledger)
    assert ledger.winner == "few"


def test_its_parameters_are_counted(model):
    assert model.n_parameters_.naive == 2 * (1 + 1 + 1)  # θ, one of two desks, and P(class)
    assert model.n_parameters_.full is None  # there is no limit to the number of tries


def test_its_table_names_its_parameter(model):
    assert str(model.tables_["tries"]).splitlines()[0] == "P(tries | class), Geometric"
    entries = {one.label: one for one in model.tables_.estimates if one.column == "tries"}
    assert {one.value for one in entries.values()} == {"probability"}
    for label, entry in entries.items():
        own = TRIES[label == LABELS]
        assert entry.estimate == pytest.approx(len(own) / (len(own) + own.sum()), abs=0.02)


def test_its_probabilities_are_drawn_instead_of_a_density():
    axes = plots.fitted_family(Geometric, TRIES[:100]).axes[0]
    outcomes, probabilities = axes.lines[0].get_data()
    assert axes.get_ylabel() == "probability"
    assert outcomes.tolist() == list(range(TRIES[:100].max() + 3))
    assert 0.9 < probabilities.sum() <= 1


def test_single_rows_are_learned_forgotten_and_answered_as_in_a_batch(model):
    for row, label in zip(ROWS[:9], LABELS, strict=False):
        model.learn_one(row, label).forget_one(row, label).learn_one(row, label)
    batch = pr.NaiveBayes({"tries": "geometric"}, calibrate=False).fit(ROWS + ROWS[:9], [*LABELS, *LABELS[:9]])
    for row in (ROWS[0], {"tries": 7, "desk": "b"}, {"tries": None, "desk": "a"}, {"tries": 2}):
        expected = batch.predict_proba([{"tries": row.get("tries"), "desk": row.get("desk")}])[0]
        assert [*model.predict_proba_one(row).values()] == pytest.approx(expected, abs=1e-3)
    np.testing.assert_array_equal(model.predict_proba(ROWS), batch.predict_proba(ROWS))


def test_a_single_row_costs_what_the_row_is(model, monkeypatch):
    """Neither are families chosen again nor is the record looked at, row by row."""
    model.predict_proba_one(ROWS[0])
    monkeypatch.setattr(Geometric, "empirical_prior", classmethod(lambda *_: pytest.fail("the record was looked at")))
    for row, label in zip(ROWS[:9], LABELS, strict=False):
        model.learn_one(row, label)
        assert sum(model.predict_proba_one(row).values()) == pytest.approx(1.0)


@pytest.mark.onnx
def test_it_is_exported(model):
    onnxruntime = pytest.importorskip("onnxruntime")
    X = np.column_stack([TRIES, np.where(TRIES % 7 == 3, np.nan, TRIES)]).astype(float)
    fitted = pr.NaiveBayes("geometric", estimate="mean", calibrate=False).fit(X, LABELS)
    session = onnxruntime.InferenceSession(pr.to_onnx(fitted).SerializeToString())
    np.testing.assert_allclose(session.run(["probabilities"], {"X": X})[0], fitted.predict_proba(X), rtol=1e-9)
    with pytest.raises(DataError, match="Geometric has no formula to export; declare another family"):
        pr.to_onnx(fitted.set_params(estimate="predictive").fit(X, LABELS))


def test_it_is_saved_loaded_and_inspected(model, tmp_path):
    path = tmp_path / "tries.priory"
    pr.save(model, path)
    np.testing.assert_array_equal(pr.load(path).predict_log_proba(ROWS), model.predict_log_proba(ROWS))
    assert pr.storage.inspect(path).columns["tries"] == ["Geometric"]


def test_a_declared_prior_is_saved_too(tmp_path):
    path = tmp_path / "tries.priory"
    pr.save(pr.NaiveBayes({"tries": Geometric(2.0, 5.0)}).fit(ROWS, LABELS), path)
    assert pr.load(path).families == {"tries": Geometric(2.0, 5.0)}


def test_records_that_it_finds_fault_with_are_refused(model, tmp_path):
    records = [r for block in model.statistics_.parts for r in block]
    [record] = [r for r in records if isinstance(r, GeometricStatistics)]
    object.__setattr__(record, "n", 0 * record.n)
    with pytest.raises(ModelFileError, match="is not a valid Failures: there are failures without rows"):
        pr.save(model, tmp_path / "tries.priory")


@pytest.mark.slow
def test_a_file_does_not_import_the_module_of_a_family(model, tmp_path):
    """Whoever loads the file must have imported the family; nothing in the file says where it is defined."""
    path = tmp_path / "tries.priory"
    pr.save(model, path)
    code = f"import priory as pr; print(pr.storage.inspect({str(path)!r}).columns); pr.load({str(path)!r})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "'tries': ['Geometric']" in run.stdout
    assert run.stderr.splitlines()[-1].endswith(
        f"{path}: this version does not know 'Geometric'; if it is a class of your own, import it first."
    )


def test_a_name_that_another_class_has_is_refused():
    with pytest.raises(ValueError, match=r"cannot register .* as 'Words': .*TokenCounts has this name; choose another"):
        register_record("Words")(GeometricStatistics)


def test_the_command_line_trains_predicts_and_explains_with_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("tries.csv", ["speed", "tries"], [(label, tries) for label, tries in zip(LABELS, TRIES, strict=True)])
    assert main(["train", "tries.csv", "--target", "speed", "--type", "tries=geometric"]) == 0
    assert main(["inspect", "tries.priory", "--json"]) == 0
    capsys.readouterr()
    assert main(["inspect", "tries.priory", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == {"tries": ["Geometric"]}
    assert main(["predict", "tries.priory", "tries.csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 200
    assert main(["train", "--help"]) == 0
    assert "geometric" in capsys.readouterr().out


def test_the_command_line_says_which_values_it_accepts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("tries.csv", ["speed", "tries"], [("few", 1), ("many", -2)])
    assert main(["train", "tries.csv", "--target", "speed", "--type", "tries=geometric"]) != 0
    assert "-2 is impossible for geometric, which takes whole numbers from 0" in capsys.readouterr().err


def test_a_name_that_is_not_a_family_is_refused_with_those_that_are():
    with pytest.raises(DataError, match="gaussian, geometric, histogram"):
        pr.NaiveBayes({"tries": "geometrik"}).fit(ROWS, LABELS)
