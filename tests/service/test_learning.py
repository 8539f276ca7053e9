"""What the service learned survives: any history of changes and crashes gives the model of the rows that are left."""

import shutil
import sqlite3
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import priory as pr
from priory.errors import NotLearnedError, ServiceError
from priory.service import model_store
from priory.service.changes import CreateRequest, DeleteRequest, ForgetRequest, LearnRequest, UndoRequest
from priory.service.journal import Journal
from priory.service.labelled_rows import RowBatch
from priory.service.model_store import ModelStore, create_model, replay_events
from priory.service.server import check_folder, find_files_with
from priory.service.writer import Writer
from priory.storage.saved_files import make_temporary_name
from running_service import wait_until

WORDS = st.sampled_from(["cash", "win", "lunch", "noon", "meeting"])
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["spam", "ham"])), min_size=1, max_size=3)


class Desk:
    """A store with its writer, without HTTP."""

    def __init__(self, folder):
        self.folder = folder
        self.open()

    def open(self):
        self.store = ModelStore(self.folder)
        self.writer = Writer(self.store)

    def ask(self, request):
        return self.writer.submit(request).result(30)

    def crash(self):
        """Everything that is not on disk is lost: no snapshot is written."""
        self.writer._tickets.put(None)
        self.writer._thread.join()
        self.store.close()

    def restart(self):
        self.crash()
        self.open()

    def learn(self, rows, name="mail", **more):
        texts, labels = zip(*rows, strict=True)
        return self.ask(LearnRequest(name, "ann", rows=RowBatch("text", texts, labels), **more))

    def forget(self, rows, name="mail"):
        texts, labels = zip(*rows, strict=True)
        return self.ask(ForgetRequest(name, "ann", rows=RowBatch("text", texts, labels)))

    @property
    def model(self):
        return self.store.get("mail")


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "data")
    desk.ask(CreateRequest("mail", "ann", kind="text", parameters=b'{"calibrate":false}'))
    yield desk
    desk.crash()


def pack(estimator, folder):
    path = folder / "packed.model"
    pr.save(estimator, path)
    content = path.read_bytes()
    path.unlink()
    return content


class Histories(RuleBasedStateMachine):
    """Learn, forget, undo, crash: the model is always that of the rows that are left, and forgotten rows are gone."""

    @initialize(calibrate=st.sampled_from(["false", '"loo"']))
    def start(self, calibrate):
        import tempfile
        from pathlib import Path

        self.folder = Path(tempfile.mkdtemp(prefix="priory-service-"))
        self.desk = Desk(self.folder)
        self.desk.ask(CreateRequest("mail", "ann", parameters=b'{"calibrate":%s}' % calibrate.encode()))
        self.events = {}  # id -> its rows, as a Counter
        self.live = set()
        self.n_secrets = 0
        self.erased = []

    @rule(rows=ROWS)
    def learn(self, rows):
        self.n_secrets += 1
        rows = [(f"|{text}| secret{self.n_secrets}x", label) for text, label in rows]
        done = self.desk.learn(rows)
        self.events[done.id] = Counter(rows)
        self.live.add(done.id)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def undo(self, data):
        target = data.draw(st.sampled_from(sorted(self.live)))
        done = self.desk.ask(UndoRequest("mail", "ann", target=target))
        self.live.remove(target)
        if data.draw(st.booleans()):
            self.desk.ask(UndoRequest("mail", "ann", target=done.id))
            self.live.add(target)

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def forget_by_id(self, data):
        target = data.draw(st.sampled_from(sorted(self.events)))
        self.desk.ask(ForgetRequest("mail", "ann", target=target))
        self.erased += [next(iter(self.events.pop(target)))[0]]
        self.live.discard(target)

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def forget_a_row(self, data):
        target = data.draw(st.sampled_from(sorted(self.events)))
        row = data.draw(st.sampled_from(sorted(self.events[target])))
        self.desk.forget([row])
        self.events[target] -= Counter([row] if target in self.live else [row] * self.events[target][row])
        if row[0] not in {text for text, _ in self.events[target]}:  # it may be left with another label
            self.erased.append(row[0])
        if not self.events[target]:
            del self.events[target]
            self.live.discard(target)

    @rule()
    def crash_and_start(self):
        before = self.desk.model
        served = pack(before.estimator, self.folder)
        self.desk.crash()
        self.desk.open()
        assert self.desk.model.version == before.version
        assert pack(self.desk.model.estimator, self.folder) == served

    @invariant()
    def the_model_is_that_of_the_rows_that_are_left(self):
        if not hasattr(self, "desk"):
            return
        rows = sorted(sum((self.events[event] for event in self.live), Counter()).elements())
        model = self.desk.model.estimator
        if not rows:
            assert not hasattr(model, "statistics_")
            return
        texts, labels = zip(*rows, strict=True)
        fitted = pr.TextClassifier(calibrate=model.calibrate).fit(texts, labels)
        assert pack(model.without_corrections(), self.folder) == pack(fitted.without_corrections(), self.folder)

    @invariant()
    def forgotten_rows_are_in_no_file(self):
        for text in getattr(self, "erased", ())[-3:]:
            assert list(find_files_with(self.folder, text)) == []

    def teardown(self):
        if hasattr(self, "desk"):
            self.desk.crash()
            assert not any(is_problem for _, is_problem in check_folder(self.folder))
            shutil.rmtree(self.folder)


TestHistories = pytest.mark.slow(Histories.TestCase)
TestHistories.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)


def test_a_request_with_a_key_is_carried_out_once(desk):
    first = desk.learn([("win cash", "spam")], key="a", digest=b"1")
    assert desk.learn([("win cash", "spam")], key="a", digest=b"1") == first
    assert desk.model.n_rows == 1
    with pytest.raises(ServiceError, match="used for another request") as refused:
        desk.learn([("other", "spam")], key="a", digest=b"2")
    assert refused.value.status == 409
    desk.crash()
    desk.open()
    assert desk.learn([("win cash", "spam")], key="a", digest=b"1") == first


def read_folder(folder):
    """The bytes of every file; of the log only its pages, and of its index only page numbers: the rest is random."""
    content = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    log = content.pop("journal.sqlite-wal")[32:]
    content["log"] = [log[start + 24 : start + 24 + 4096] for start in range(0, len(log), 24 + 4096)]
    content["index of the log"] = content.pop("journal.sqlite-shm")[136:]
    return content


def live_with(row, folder, kind, way, monkeypatch):
    """Learn a row among others under a key, answer, undo it or not, forget it, and return what is left in the folder.

    The service is "killed" after it has answered, and again before it has erased the row that it has forgotten.
    """
    desk = Desk(folder)
    desk.ask(CreateRequest("mail", "ann", kind=kind))
    others = [(f"hello number {i}", i) if kind == "text" else ({"age": i, "town": f"t{i % 3}"}, i) for i in range(40)]
    rows = [(row, "ham"), *((other, ("spam", "ham")[i % 2]) for other, i in others)]
    texts, labels = zip(*rows, strict=True)
    batch = RowBatch(kind, texts, labels)
    learned = desk.ask(LearnRequest("mail", "ann", f"about {row}", str(row).encode(), rows=batch))
    desk.ask(LearnRequest("mail", "ann", "again", b"again", rows=batch.keep([True, True] + [False] * 39)))
    desk.model.estimator.predict_proba_one(row)
    if "undone" in way:
        desk.ask(UndoRequest("mail", "ann", f"undo {row}", b"undo", target=learned.id))
    if "killed" in way:
        desk.restart()
    forgotten = RowBatch(kind, (row, row), ("ham", "ham"))
    with monkeypatch.context() as patch:
        if "killed" in way:
            patch.setattr(Writer, "_erase_due_rows", lambda writer: None)
        desk.ask(ForgetRequest("mail", "ann", f"forget {row}", str(row).encode(), rows=forgotten))
        desk.model.estimator.predict_proba_one(row)
    if "killed" in way:
        assert any(find_files_with(folder, str(row)[:5] if kind == "text" else row["town"][:5]))
        desk.restart()
    left = read_folder(folder)
    desk.crash()
    return left


@pytest.mark.parametrize("way", ["learned", "undone", "killed", "undone and killed"])
@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("text", ["zebra at noon", "quagga " * 3000]),
        ("table", [{"age": 61, "town": "zebra"}, {"age": 7, "town": "quagga " * 3000}]),
    ],
)
def test_nothing_in_the_folder_depends_on_a_forgotten_row(tmp_path, monkeypatch, kind, rows, way):
    monkeypatch.setattr("time.time", lambda: 1e9)
    one, other = (live_with(row, tmp_path / str(place), kind, way, monkeypatch) for place, row in enumerate(rows))
    assert one == other
    for folder in tmp_path.iterdir():
        assert [word for word in ("zebra", "quagga") if list(find_files_with(folder, word))] == []


def test_answers_do_not_wait_for_the_corrections_of_a_model_that_has_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(model_store, "SECONDS_OF_QUIET", 0.0)
    desk = Desk(tmp_path)
    desk.ask(CreateRequest("mail", "ann"))
    rows = [(f"{'cash' if i % 3 else 'lunch'} word{i} {'win' if i % 2 else 'noon'}", "ab"[i % 2]) for i in range(80)]
    desk.learn(rows)
    worker = model_store.StandbyWorker(desk.store)
    wait_until(lambda: desk.model.estimator.learned_.standby.sets)
    answering = []

    def save_snapshot(store, model):
        answering.append(store.get("mail").estimator.learned_.find_stand_in())
        save(store, model)

    save = ModelStore.save_snapshot
    monkeypatch.setattr(ModelStore, "save_snapshot", save_snapshot)
    desk.forget(rows[:1])
    assert answering[0] is not None
    worker.notify()
    wait_until(lambda: len(desk.model.estimator.learned_.standby.sets) > 1)
    worker.close()
    desk.crash()
    texts, labels = zip(*rows[1:], strict=True)
    never = pr.TextClassifier().fit(texts, labels)
    assert pack(desk.model.estimator, tmp_path) == pack(never, tmp_path)


def test_a_key_is_forgotten_with_its_row_and_a_forgetting_is_answered_again(desk):
    rows = RowBatch("text", ("win cash",), ("spam",))
    desk.learn([("win cash", "spam")], key="from anna", digest=b"1")
    request = ForgetRequest("mail", "ann", "about anna", b"2", rows=rows)
    assert desk.ask(request) == desk.ask(request)
    with pytest.raises(ServiceError, match="used for another request"):
        desk.ask(ForgetRequest("mail", "ann", "about anna", b"3", rows=rows))
    assert list(find_files_with(desk.folder, "anna")) == []


def test_a_deletion_is_carried_out_once_even_if_the_name_is_given_again(desk):
    request = DeleteRequest("mail", "ann", "gone", b"1")
    done = desk.ask(request)
    desk.ask(CreateRequest("mail", "ann"))
    assert desk.ask(request) == done
    assert "mail" in desk.store.models
    with pytest.raises(ServiceError, match="used for another request"):
        desk.learn([("win", "spam")], key="gone", digest=b"2")


def test_requests_that_arrive_together_are_learned_in_one_step_and_a_bad_one_harms_no_other(desk):
    rows = [RowBatch("text", (f"win {i}",), ("spam",)) for i in range(40)]
    rows[7] = RowBatch("text", ("mixed",), (7,))
    futures = [desk.writer.submit(LearnRequest("mail", "ann", key=str(i), rows=r)) for i, r in enumerate(rows)]
    outcomes = [future.exception(30) or future.result() for future in futures]
    assert [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Exception)] == [7]
    assert desk.model.n_rows == 39


def test_the_same_key_twice_in_one_group_is_carried_out_once(desk):
    rows = RowBatch("text", ("win",), ("spam",))
    requests = [LearnRequest("mail", "ann", key="k", digest=b"d", rows=rows) for _ in range(9)]
    answers = {future.result(30).id for future in [desk.writer.submit(request) for request in requests]}
    assert len(answers) == 1
    assert desk.model.n_rows == 1


def test_replaying_the_whole_journal_gives_the_served_record(desk):
    for i in range(30):
        desk.learn([(f"win {i % 7} cash", "spam"), (f"lunch {i % 5}", "ham")])
    desk.ask(UndoRequest("mail", "ann"))
    desk.forget([("win 3 cash", "spam")])
    entry = desk.model.entry
    replayed = replay_events(create_model(entry), desk.store.journal)
    assert pack(replayed.estimator, desk.folder) == pack(desk.model.estimator, desk.folder)


def test_what_was_never_learned_cannot_be_forgotten(desk):
    desk.learn([("win cash", "spam")])
    with pytest.raises(NotLearnedError, match="row 0 was never learned"):
        desk.forget([("cash win", "spam")])  # the same words, but another text
    with pytest.raises(ServiceError, match="has no event 99"):
        desk.ask(ForgetRequest("mail", "ann", target=99))
    assert desk.model.n_rows == 1


def test_what_was_erased_cannot_be_undone(desk):
    done = desk.learn([("win cash", "spam")])
    forgotten = desk.ask(ForgetRequest("mail", "ann", target=done.id))
    for target in (done.id, forgotten.id):
        with pytest.raises(ServiceError) as refused:
            desk.ask(UndoRequest("mail", "ann", target=target))
        assert refused.value.status == 409


def test_a_deleted_model_leaves_nothing(desk):
    desk.learn([("a very secretword", "spam")])
    desk.ask(DeleteRequest("mail", "ann"))
    assert list(find_files_with(desk.folder, "secretword")) == []
    with pytest.raises(ServiceError, match="no model"):
        desk.learn([("win", "spam")])
    desk.crash()
    desk.open()
    assert desk.store.models == {}


def test_a_crash_before_the_erasing_is_made_up_for_at_the_next_start(desk, monkeypatch):
    desk.learn([("a very secretword", "spam"), ("lunch", "ham")])
    monkeypatch.setattr(Writer, "_erase_due_rows", lambda self: None)
    desk.forget([("a very secretword", "spam")])
    assert list(find_files_with(desk.folder, "secretword"))
    monkeypatch.undo()
    desk.crash()
    desk.open()
    assert list(find_files_with(desk.folder, "secretword")) == []
    assert desk.model.n_rows == 1


def test_a_log_that_could_not_be_truncated_is_truncated_with_the_next_change(desk, monkeypatch):
    desk.learn([("a very secretword", "spam"), ("lunch", "ham")])

    def fail(self):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Journal, "truncate_log", fail)
    with pytest.raises(ServiceError, match="could not be erased"):
        desk.forget([("a very secretword", "spam")])
    assert list(find_files_with(desk.folder, "secretword"))
    monkeypatch.undo()
    desk.learn([("noon", "ham")])
    assert list(find_files_with(desk.folder, "secretword")) == []


def test_a_service_that_was_killed_leaves_neither_uploads_nor_half_written_snapshots(desk):
    desk.crash()
    upload = desk.store.scratch_folder / "upload" / "mail.csv"
    upload.parent.mkdir()
    for path in (upload, desk.store.snapshot_folder / make_temporary_name("1.priory")):
        path.write_text("a very secretword")
    desk.open()
    assert list(find_files_with(desk.folder, "secretword")) == []


def test_a_damaged_journal_is_a_problem_that_the_check_tells(desk):
    desk.learn([(f"row {number}", "spam") for number in range(200)])
    desk.crash()
    journal = desk.folder / "journal.sqlite"
    whole = journal.read_bytes()
    for start in range(4096, len(whole), 4096):
        journal.write_bytes(whole[:start] + b"\xff" * 2048 + whole[start + 2048 :])
        found = list(check_folder(desk.folder))
        assert any(is_problem and "journal" in line for line, is_problem in found), start
    journal.write_bytes(whole)
    desk.open()


def test_a_full_disk_refuses_changes_and_nothing_else(desk):
    desk.learn([("win cash", "spam")])
    journal = desk.store.journal
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ServiceError, match="disk is full") as refused:
        desk.learn([("long " * 20000, "spam")])
    assert refused.value.status == 507
    assert desk.model.n_rows == 1
    assert desk.model.estimator.predict(["win"]).tolist() == ["spam"]
    journal._connection.execute("PRAGMA max_page_count = 1000000")
    desk.learn([("long " * 20000, "spam")])
    assert desk.model.n_rows == 2


def test_two_services_cannot_have_one_folder(desk, monkeypatch):
    monkeypatch.setattr("priory.service.model_store.LOCK_TIMEOUT_SECONDS_AT_START", 0.05)
    with pytest.raises(pr.errors.FileBusyError):
        ModelStore(desk.folder)
