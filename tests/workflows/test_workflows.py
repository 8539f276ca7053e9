"""What the commands do, from Python: the same results, and nothing is printed."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import priory
from priory import inbox, workflows
from priory.errors import DataError, FileBusyError, NotLearnedError
from priory.storage import updating
from priory.workflows import Callbacks, ColumnOptions, FileTask, ReadOptions, TrainingOptions
from shell import TEXTS, write

PLAIN = TrainingOptions(plain=True)


@pytest.fixture
def quiet(capfd):
    """Fails if anything is printed."""
    yield
    assert capfd.readouterr() == ("", "")


def inbox_rows():
    messages, labels = inbox()
    return [*messages[0], "label"], [[*m.values(), y] for m, y in zip(messages, labels, strict=True)]


def test_training_on_a_table_returns_all_that_the_command_prints(here, quiet):
    header, rows = inbox_rows()
    write("inbox.csv", header, rows)
    result = workflows.train("inbox.csv", target="label")
    assert isinstance(result.model, priory.NaiveBayes)
    assert (result.n_rows, result.classes) == (308, {"normal": 135.0, "spam": 97.0, "urgent": 76.0})
    assert result.families == {"sender": "categorical", "hour": "histogram", "links": "histogram", "text": "text"}
    assert result.scores.accuracy.value > 0.75
    assert len(result.labels) == len(result.sample) == 308
    assert set(result.evidence) == {"normal", "spam", "urgent"}
    assert result.evidence["spam"][0][0] == "text"
    assert (list(result.findings), result.empty_columns) == ([], [])
    answer = result.as_dict()
    json.dumps(answer)
    assert (answer["rows"], answer["sampled"]) == (308, 308)


def test_training_on_texts_equals_fitting_them(here, quiet):
    write("mail.csv", ["label", "text"], TEXTS)
    trained = workflows.train("mail.csv", target="label", options=PLAIN).model
    texts, labels = [text for _, text in TEXTS], [label for label, _ in TEXTS]
    fitted = priory.TextClassifier(calibrate=False).fit(texts, labels)
    assert trained.get_params() == fitted.get_params()
    np.testing.assert_array_equal(trained.predict_proba(texts), fitted.predict_proba(texts))


def test_options_for_files_columns_and_learning(here, quiet):
    with open("a.csv", "w") as file:
        file.write("y;x;id\nyes;1;7\nno;2;8\nyes;NA;9\n;3;9\n")
    result = workflows.train(
        ["a.csv"],
        columns=ColumnOptions("y", {"x": "poisson"}, ("id",), frozenset({"NA"}), skip_unlabelled=True),
        read=ReadOptions(delimiter=";"),
        options=TrainingOptions(plain=True, alpha=2.0),
    )
    assert (result.n_rows, result.families, result.model.alpha) == (3, {"x": "poisson"}, 2.0)


def test_one_task_serves_every_workflow(here, quiet):
    header, rows = inbox_rows()
    write("inbox.csv", header, rows)
    notes = []
    task = FileTask("inbox.csv", ColumnOptions("label", coerce=True), callbacks=Callbacks(notify=notes.append))
    priory.save(workflows.train(task, options=PLAIN).model, "a.priory")
    priory.save(workflows.train("inbox.csv", target="label", options=PLAIN).model, "b.priory")
    with open("a.priory", "rb") as ours, open("b.priory", "rb") as theirs:
        assert ours.read() == theirs.read()
    assert workflows.evaluate("a.priory", task).n_rows == workflows.report("a.priory", task, audit=False).n_rows == 308
    assert workflows.rank_columns("a.priory", task)[0].name == "text"
    assert workflows.forget("a.priory", task).n_rows_known == 0
    assert workflows.learn("a.priory", task).n_rows_known == 308
    assert "it knows no rows any more" in notes[-1]
    with pytest.raises(DataError, match="has no column 'sendr'"):
        workflows.evaluate("a.priory", task, target="sendr")


def test_a_model_that_answers_knows_its_columns(mail):
    for answer in (workflows.predict, workflows.explain):
        with pytest.raises(DataError, match="the model knows its columns"):
            answer("mail.priory", "mail.csv", columns=ColumnOptions(missing=frozenset({"NA"})))


def test_notes_progress_and_activities_go_to_the_callbacks(mail, quiet):
    notes, sizes, activities = [], [], []

    class Activity:
        def __init__(self, name):
            activities.append(name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    callbacks = Callbacks(sizes.append, notes.append, Activity)
    write("mail2.csv", ["label", "text", "nothing"], [[*row, ""] for row in TEXTS])
    workflows.train("mail2.csv", target="label", columns=ColumnOptions(types={"text": "text"}), callbacks=callbacks)
    assert notes == ["column 'nothing' is empty and was left out"]
    assert sum(sizes) > 100
    judging = "judging 6 rows by models that have not learned them"
    assert activities == ["fitting corrections", judging, "looking for leakage"]


def test_predictions_are_batches_a_table_or_a_file(mail, quiet):
    model = priory.load("mail.priory")
    for source in ("mail.priory", model):
        table = workflows.predict(source, "mail.csv").to_table()
        assert table.column_names == ["label", "text", "predicted_label", "probability", "certainty"]
        assert table["predicted_label"].to_pylist() == [label for label, _ in TEXTS]
    write("new.csv", ["text"], [["claim your free prize"], ["xyzzy"]])
    [batch] = workflows.predict(model, "new.csv", threshold=0.8)
    assert batch["label"].to_pylist() == ["spam", None]
    workflows.predict(model, "new.csv").write("out.parquet")
    assert pa.parquet.read_table("out.parquet")["label"].to_pylist()[0] == "spam"


def test_cells_with_labels_that_the_model_has_never_seen_are_counted(table, quiet):
    header, rows = inbox_rows()
    write("new.csv", header[:-1], [["martian", *row[1:-1]] for row in rows[:3]])
    notes = []
    found = workflows.predict("inbox.priory", "new.csv", callbacks=Callbacks(notify=notes.append))
    assert len(list(found)) == 1
    assert found.n_unknown_labels == 3
    assert len(notes) == 1


def test_explanations_of_rows_and_of_values_are_those_of_the_model(table, quiet):
    model = priory.load("inbox.priory")
    messages, _ = inbox()
    from_file = workflows.explain(model, "inbox.csv", [3, 1])
    assert [str(ledger) for ledger in from_file] == [str(model.explain([messages[i]])[0]) for i in (2, 0)]
    values = {name: str(value) for name, value in messages[0].items()}
    [from_values] = workflows.explain_values("inbox.priory", values)
    assert str(from_values) == str(from_file[1])
    [from_pairs] = workflows.explain_values(model, [f"{name}={value}" for name, value in values.items()])
    assert str(from_pairs) == str(from_values)
    with pytest.raises(DataError, match=r"inbox.csv: has no row 999"):
        workflows.explain(model, "inbox.csv", [999])


@pytest.mark.slow
def test_evaluation_report_and_audit(table, quiet):
    pytest.importorskip("jinja2")
    evaluation = workflows.evaluate("inbox.priory", "inbox.csv")
    scores, n_rows = evaluation.scores, evaluation.n_rows
    honest = workflows.evaluate("inbox.priory", "inbox.csv", learned=True).scores
    assert n_rows == 308
    assert honest.accuracy.value < scores.accuracy.value
    assert "</html>" in workflows.report("inbox.priory", "inbox.csv").page.html
    assert list(workflows.audit("inbox.csv", target="label")) == []
    write("half.csv", *inbox_rows())
    assert "copies" in str(workflows.audit("inbox.csv", test="half.csv", target="label")).lower()


def test_learning_forgetting_and_merging_change_model_files_exactly(here, quiet):
    write("a.csv", ["label", "text"], TEXTS[:4])
    write("b.csv", ["label", "text"], TEXTS[4:])
    created = workflows.learn("m.priory", "a.csv", target="label")
    assert (created.n_rows, created.n_rows_known) == (4, 4.0)
    before = priory.load("m.priory")
    learned = workflows.learn("m.priory", "b.csv")
    assert (learned.n_rows, learned.n_rows_known) == (2, 6.0)
    priory.save(workflows.train("b.csv", target="label", options=PLAIN).model, "b.priory")
    merged = workflows.merge([before, "b.priory"])
    np.testing.assert_array_equal(merged.counts_, priory.load("m.priory").counts_)
    forgotten = workflows.forget("m.priory", "b.csv")
    assert (forgotten.n_rows, forgotten.n_rows_known) == (2, 4.0)
    np.testing.assert_array_equal(priory.load("m.priory").counts_, before.counts_)
    with pytest.raises(NotLearnedError):
        workflows.forget("m.priory", "b.csv")
    with pytest.raises(FileNotFoundError, match="no such model"):
        workflows.forget("none.priory", "b.csv")


@pytest.mark.slow
def test_refreshing_fits_the_corrections_again(here, quiet):
    header, rows = inbox_rows()
    write("all.csv", header, rows)
    write("gone.csv", header, rows[:50])
    options = TrainingOptions(audit=False, memory=0)
    priory.save(workflows.train("all.csv", target="label", options=options).model, "m.priory")
    names, notes = priory.load("m.priory").corrections_.names, []
    forgotten = workflows.forget("m.priory", "gone.csv", callbacks=Callbacks(notify=notes.append))
    assert forgotten.model.stale_ == names
    assert f"({', '.join(names)})" in notes[0]
    assert workflows.learn("m.priory", "gone.csv", refresh_from="all.csv").model.stale_ == ()
    assert priory.load("m.priory").corrections_.names == names


def test_a_model_file_in_use_is_waited_for_only_so_long(mail, quiet):
    with updating("mail.priory"), pytest.raises(FileBusyError):
        workflows.learn("mail.priory", "mail.csv", wait=0.01)


def test_inspect_is_that_of_the_storage(mail, quiet):
    assert workflows.inspect("mail.priory").model == "TextClassifier"


def test_every_exported_name_is_there_and_documented():
    for name in workflows.__all__:
        assert getattr(workflows, name).__doc__
        assert name in dir(workflows)
    with pytest.raises(AttributeError, match=r"module 'priory.workflows' has no attribute 'nonsense'"):
        workflows.nonsense  # noqa: B018  (looking is the test)


def test_importing_the_workflows_imports_nothing_heavy():
    code = "import sys, priory.workflows; print(sorted({'sklearn', 'scipy', 'pyarrow', 'click'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_running_a_workflow_does_not_hide_the_function_behind_a_module(mail):
    workflows.train("mail.csv", target="label", options=PLAIN)
    assert all(callable(getattr(workflows, name)) for name in workflows.__all__)
