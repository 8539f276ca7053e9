"""Model files that change: learn, forget, merge."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import priory
from priory import inbox
from priory.cli import main
from priory.estimators.text_classifier import TextClassifier
from priory.storage import updating
from shell import TEXTS, write


def test_learn_and_forget_are_exact(mail, run):
    before = Path("mail.priory").read_bytes()
    write("more.csv", ["label", "text"], [["eggs", "a new word"], ["ham", "lunch again"]])
    code, out, _ = run("learn", "mail.priory", "more.csv")
    assert (code, out) == (0, "2 rows learned; mail.priory now knows 8\n")
    assert priory.load("mail.priory").classes_.tolist() == ["eggs", "ham", "spam"]
    code, out, _ = run("forget", "mail.priory", "more.csv", "--json")
    assert json.loads(out) == {"model": "mail.priory", "forgotten": 2, "rows": 6.0}
    assert Path("mail.priory").read_bytes() == before


def write_inbox():
    messages, labels = inbox()
    rows = [[y, m["text"]] for m, y in zip(messages, labels, strict=True)]
    write("all.csv", ["label", "text"], rows)
    write("gone.csv", ["label", "text"], rows[:100])
    write("kept.csv", ["label", "text"], rows[100:])
    return rows


def test_a_model_that_forgot_is_the_model_that_never_learned(run):
    write_inbox()
    for name in ("all", "kept"):
        assert run("train", f"{name}.csv", "--target", "label", "--no-audit")[0] == 0
    assert priory.load("all.priory").corrections_.names == ("tempering", "refinement")
    code, _, err = run("forget", "all.priory", "gone.csv")
    assert (code, err) == (0, "")
    assert priory.load("all.priory").corrections_version_ == priory.load("kept.priory").corrections_version_


def test_a_model_without_memory_is_made_honest_again_on_rows_it_knows(run):
    rows = write_inbox()
    run("train", "all.csv", "--target", "label", "--no-audit", "--memory", "0")
    assert priory.load("all.priory").statistics_.sample is None
    _, _, err = run("forget", "all.priory", "gone.csv")
    assert err == (
        "priory: the corrections (tempering, refinement) were dropped, because the model keeps no rows to derive them "
        "from; use --refresh FILE to fit them again\n"
    )
    run("learn", "all.priory", "gone.csv")
    code, _, err = run("forget", "all.priory", "gone.csv", "--refresh", "kept.csv")
    assert (code, err) == (0, "")
    again, texts = priory.load("all.priory"), [text for _, text in rows[:100]]
    assert again.stale_ == ()
    never = TextClassifier().fit([text for _, text in rows[100:]], [y for y, _ in rows[100:]])
    np.testing.assert_allclose(again.predict_proba(texts), never.predict_proba(texts), atol=1e-6)


def test_what_was_never_learned_is_not_forgotten_and_nothing_else_is(mail, run):
    whole = Path("mail.priory").read_bytes()
    write("more.csv", ["label", "text"], [*TEXTS[:1], ["ham", "never seen before"]])
    code, _, err = run("forget", "mail.priory", "more.csv")
    assert code == 3
    assert "forget only rows that were learned" in err
    assert Path("mail.priory").read_bytes() == whole


def test_merge_is_learning_both(mail, run):
    write("a.csv", ["label", "text"], TEXTS[:4])
    write("b.csv", ["label", "text"], TEXTS[4:])
    for name in "ab":
        main(["train", f"{name}.csv", "--target", "label", "--plain"])
    code, out, _ = run("merge", "a.priory", "b.priory", "-o", "c.priory")
    assert (code, out) == (0, "wrote c.priory: 6 rows\n")
    both, whole = priory.load("c.priory"), priory.load("mail.priory")
    assert both.vocabulary_ == whole.vocabulary_
    np.testing.assert_array_equal(both.counts_, whole.counts_)


def test_learning_into_nothing_makes_the_model_that_train_makes(run):
    write("a.csv", ["label", "text"], TEXTS[:4])
    write("b.csv", ["label", "text"], TEXTS[4:])
    code, out, err = run("learn", "new.priory", "a.csv", "b.csv", "--target", "label")
    assert (code, out) == (0, "6 rows learned; new.priory now knows 6\n")
    created = "created one that predicts 'label' from text (text, 25 different words)"
    assert err == f"priory: new.priory: no such model; {created}\n"
    run("train", "a.csv", "b.csv", "--target", "label", "--no-audit", "-o", "trained.priory")
    new, trained = priory.load("new.priory"), priory.load("trained.priory")
    assert new.get_params() == trained.get_params()
    assert new.vocabulary_ == trained.vocabulary_
    np.testing.assert_array_equal(new.counts_, trained.counts_)
    code, out, _ = run("learn", "new.priory", "a.csv")
    assert (code, out) == (0, "4 rows learned; new.priory now knows 10\n")


@pytest.mark.slow
def test_processes_that_learn_at_once_into_nothing_lose_nothing(here):
    """As benchmarks/crashes.py does with more of them, and into a model that is there."""
    learners = []
    for number in range(4):
        write(f"{number}.csv", ["label", "text"], [["ham", f"word{number} lunch"], ["spam", f"word{number} prize"]])
        typed = ["learn", "model.priory", f"{number}.csv", "--target", "label", "--text", "text"]
        three_times = f"from priory.cli import main; raise SystemExit(max(main({typed}) for _ in range(3)))"
        command = [sys.executable, "-c", three_times]
        learners.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    said = "".join(learner.communicate(timeout=120)[1] for learner in learners)
    assert [learner.returncode for learner in learners] == [0] * 4
    assert said.count("no such model") == 1
    model = priory.load("model.priory")
    assert model.class_count_.tolist() == [12.0, 12.0]
    seen = dict(zip(model.vocabulary_, model.counts_.sum(axis=1).tolist(), strict=True))
    assert seen == {"lunch": 12.0, "prize": 12.0} | {f"word{number}": 6.0 for number in range(4)}
    assert sorted(os.listdir()) == ["0.csv", "1.csv", "2.csv", "3.csv", "model.priory"]


def test_who_finds_the_model_taken_waits_and_says_so(mail, run, monkeypatch):
    monkeypatch.setattr("priory.workflows.updates.MAX_SILENT_WAIT_SECONDS", 0.05)
    with updating("mail.priory"):
        code, _, err = run("learn", "mail.priory", "mail.csv", "--wait", "0.1")
    assert code == 5
    assert err == (
        "priory: mail.priory: another process is changing it; waiting until it is done\n"
        "priory: mail.priory: another process is changing it and holds .mail.priory.lock; try again later.\n"
    )
    begun, may_end = threading.Event(), threading.Event()

    def hold():
        with updating("mail.priory"):
            begun.set()
            may_end.wait(0.5)

    holder = threading.Thread(target=hold)
    holder.start()
    begun.wait()
    code, out, err = run("learn", "mail.priory", "mail.csv")
    holder.join()
    assert (code, out) == (0, "6 rows learned; mail.priory now knows 12\n")
    assert err == "priory: mail.priory: another process is changing it; waiting until it is done\n"


def test_a_sample_that_lost_more_than_its_reserve_is_reported(tmp_path, capsys):
    lines = [f"{k},{'ab'[k % 2]}" for k in range(400)]
    for name, rows in (("all", lines), ("one", lines[:1]), ("rest", lines[3::2])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,label", *rows]))
    model, rest = str(tmp_path / "m.priory"), ["--refresh", str(tmp_path / "rest.csv")]
    assert main(["train", str(tmp_path / "all.csv"), "--target", "label", "--memory", "100", "-o", model]) == 0
    assert main(["forget", model, str(tmp_path / "one.csv")]) == 0
    assert main(["inspect", model]) == 0
    assert "the sample holds" not in "".join(capsys.readouterr())
    (tmp_path / "most.csv").write_text("\n".join(["x,label", *lines[2::2]]))
    assert main(["forget", model, str(tmp_path / "most.csv")]) == 0
    kept = len(priory.load(model).statistics_.sample)
    assert kept < 100
    assert f"the sample holds {kept} of 100 rows" in capsys.readouterr().err
    assert main(["inspect", model]) == 0
    assert f"short     the sample holds {kept} of 100 rows; learn or forget with --refresh" in capsys.readouterr().out
    (tmp_path / "last.csv").write_text("\n".join(["x,label", lines[1]]))
    assert main(["forget", model, str(tmp_path / "last.csv"), *rest]) == 0
    assert "the sample holds" not in capsys.readouterr().err
