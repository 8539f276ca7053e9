"""Pages for teaching a model: try and correct, the label queue, the learned rows."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup
from starlette.responses import Response

from priory.errors import DataError, ServiceError
from priory.export.report_sections import list_largest_lines
from priory.model.ledger import Ledger
from priory.model.ledger_output import DECIBANS_PER_NAT
from priory.service.changes import ForgetRequest, LearnRequest, UndoRequest
from priory.service.handlers import describe_model
from priory.service.labelled_rows import Row, RowBatch, RowLabel, convert_to_input
from priory.service.model_store import ServedModel
from priory.service.pages import page_state
from priory.service.pages.model_pages import format_row
from priory.service.pages.page_call import PageCall, list_classes
from priory.service.predictions import predict_rows
from priory.workflows.model_files import format_count

MAX_LINES_SHOWN = 25
MAX_CHANGES_SHOWN = 10
MAX_TEXT_SHOWN = 20_000  # characters
MIN_CHANGE_DECIBANS = 0.05


def explain_example(model: ServedModel, row: str | Row) -> Ledger:
    model.check_fitted()
    batch = RowBatch(model.entry.kind, (row,))
    return model.estimator.explain(convert_to_input(batch, model.estimator))[0]


def answer_example(model: ServedModel, row: str | Row) -> dict[str, object]:
    """The prediction for one text or row, for the template answer.html."""
    ledger = explain_example(model, row)
    ranked, probabilities = ledger.ranked(), ledger.probabilities()
    names = [str(ledger.classes[c]) for c in ranked]
    return {
        "version": model.version,
        "label": names[0],
        "against": names[1] if len(names) > 1 else "",
        "probabilities": [(name, probabilities[c]) for name, c in zip(names, ranked, strict=True)],
        "lines": list_largest_lines(ledger, max_lines=MAX_LINES_SHOWN),
        "total": ledger.log_odds() * DECIBANS_PER_NAT,
        "text": None if ledger.text is None else Markup(ledger.marked(max_characters=MAX_TEXT_SHOWN)),  # escaped
        "corrections": ledger.corrections,
    }


def compare_answers(before: ServedModel, after: ServedModel, row: str | Row, label: RowLabel) -> dict[str, object]:
    """What a change of the model did to the answer: probabilities, and the evidence for a class that changed most.

    Each line is a name with the number before and after, None if it did not exist.
    """
    (old, old_weights), (new, new_weights) = (_read_answer(model, row, label) for model in (before, after))
    evidence = [(n, old_weights.get(n), new_weights.get(n)) for n in dict.fromkeys([*new_weights, *old_weights])]
    change = {name: abs((b or 0.0) - (a or 0.0)) for name, a, b in evidence}
    changed = sorted((line for line in evidence if change[line[0]] >= MIN_CHANGE_DECIBANS), key=lambda x: -change[x[0]])
    names = sorted({*old, *new}, key=lambda name: -new.get(name, 0.0))
    return {
        "probabilities": [(name, old.get(name), new.get(name)) for name in names],
        "evidence": changed[:MAX_CHANGES_SHOWN],
    }


def _read_answer(model: ServedModel, row: str | Row, label: RowLabel) -> tuple[dict[str, float], dict[str, float]]:
    """The probability of each class, and the decibans of each entry for a class; empty for what is not known yet."""
    if not model.is_fitted:
        return {}, {}
    ledger = explain_example(model, row)
    probabilities = dict(zip(map(str, ledger.classes), ledger.probabilities(), strict=True))
    if label not in ledger.classes or len(ledger.classes) < 2:
        return probabilities, {}
    weights = zip(ledger.entries(), ledger.weights(for_class=label), strict=True)
    return probabilities, {line.name: weight * DECIBANS_PER_NAT for line, weight in weights}


MAX_FOUND_ROWS = 200
MAX_KEYS = 9  # the digits that label a row
FIGURES = (  # of the course; each is the module static/figure-NAME.js
    ("candy-bags", "Candy bags", "Five kinds of bags, lime and cherry. Draw, and watch the posterior move."),
    ("coin", "A coin", "Every share of heads is a hypothesis: a Beta prior, and what the tosses add to it."),
    ("two-bells", "Two bells", "One number, two classes: where the border is, and how often it is wrong."),
    ("tennis", "PlayTennis", "Naive Bayes by hand: the ledger of a day."),
    ("m-estimate", "Virtual examples", "What m virtual examples do to frequencies, above all to zeros."),
    ("reliability", "Copies of a column", "What naive Bayes claims when columns repeat one another."),
    ("posterior-lines", "Lines", "Which lines remain plausible as points are added."),
)


# -- try and correct -------------------------------------------------------------------------------------------------


async def show_try(call: PageCall) -> Response:
    return call.render("try.html", model=describe_model(call.model))


async def answer_try(call: PageCall) -> Response:
    """Predict the typed example, and show the evidence."""
    row, model = call.read_example(await call.read_form()), call.model
    answer = await call.run(answer_example, model, row)
    return call.render("answer.html", model=describe_model(model), answer=answer, changes=None)


async def learn_try(call: PageCall) -> Response:
    """Learn the typed example with its true class, and show the effect."""
    form, before = await call.read_form(), call.model
    row, label = call.read_example(form), call.read_class(form)
    learned = await call.change(LearnRequest, rows=call.make_batch(row, label))
    return await _show_change(call, before, row, label, learned.id, f"Learned as {label}.")


async def undo_try(call: PageCall) -> Response:
    form, before = await call.read_form(), call.model
    row, label, number = call.read_example(form), call.read_class(form), form.read_number("id")
    await call.change(UndoRequest, target=number)
    return await _show_change(call, before, row, label, None, f"Undone: it is not learned as {label} any more.")


async def _show_change(
    call: PageCall, before: ServedModel, row: str | Row, label: RowLabel, event: int | None, done: str
) -> Response:
    after = call.model
    changes = {
        "done": done,
        "event": event,
        "label": label,
        "rows": (before.n_rows, after.n_rows),
        **await call.run(compare_answers, before, after, row, label),
    }
    answer = await call.run(answer_example, after, row) if after.is_fitted else None
    return call.render("answer.html", model=describe_model(after), answer=answer, changes=changes)


# -- play ------------------------------------------------------------------------------------------------------------


async def show_play(call: PageCall) -> Response:
    """The figures of the course, which compute in the browser."""
    return call.render("play.html", figures=FIGURES)


# -- the queue -------------------------------------------------------------------------------------------------------


async def show_queue(call: PageCall) -> Response:
    return await _render_queue(call, "queue.html", call.read_query_number("at", 0, 2**31))


async def show_queue_row(call: PageCall) -> Response:
    return await _render_queue(call, "queue_row.html", call.read_query_number("at", 0, 2**31))


async def _render_queue(call: PageCall, template: str, at: int, done: str = "") -> Response:
    model, queue = call.model, call.queue
    ranked = await call.run(queue.rank, model)
    at = min(at, max(len(ranked) - 1, 0))
    item = ranked[at] if ranked else None
    classes = list_classes(model)
    probabilities: list[float] = []
    if item and model.is_fitted:
        [probabilities] = (await call.run(predict_rows, model, call.make_batch(item.row))).tolist()
    return call.render(
        template,
        model=describe_model(model),
        item=item,
        cells=item.row.items() if item and isinstance(item.row, dict) else [],
        at=at,
        n_rows=len(ranked),
        n_labelled=len(queue.labelled),
        classes=[
            (str(label), str(place + 1) if place < MAX_KEYS else "", probabilities[place] if probabilities else None)
            for place, label in enumerate(classes)
        ],
        done=done,
        suffixes=",".join(page_state.UPLOAD_SUFFIXES),
    )


async def add_queue_rows(call: PageCall) -> Response:
    """Add the rows of a file, or typed ones, to the queue."""
    model, body = call.model, await call.request.body()
    file_name = call.query.get("file", "")[:200]
    rows, _ = await call.run(page_state.read_given_rows, call.service, model, body, file_name)
    count = call.queue.add(rows, model)
    return await _render_queue(call, "queue_row.html", 0, f"Added {format_count(count, 'row')}.")


async def label_queue_row(call: PageCall) -> Response:
    """Learn a row of the queue with the chosen class."""
    form, queue = await call.read_form(), call.queue
    label = call.read_class(form)
    item = queue.take(form.read_number("item"))
    try:
        answer = await call.change(LearnRequest, rows=call.make_batch(item.row, label))
    except Exception:
        queue.put_back(item)
        raise
    if item.is_learned:  # not twice, with its label and without
        await call.change(ForgetRequest, rows=replace(call.make_batch(item.row), labels=(None,)))
    queue.note(replace(item, is_learned=False), answer.id)
    return await _render_queue(call, "queue_row.html", form.read_number("at"), f"Learned as {label}.")


async def learn_queue(call: PageCall) -> Response:
    """Learn the rows that wait as texts without label."""
    waiting = [item for item in call.queue.items.values() if not item.is_learned]
    if not waiting:
        raise DataError("all rows of the queue are learned without label already")
    texts = tuple(item.row for item in waiting)
    await call.change(LearnRequest, rows=RowBatch(call.model.entry.kind, texts, (None,) * len(texts)))
    call.queue.note_learned(waiting)
    note = await call.run(getattr, call.model.estimator, "unlabelled_", "")
    return await _render_queue(call, "queue_row.html", 0, f"Learned without label: {note}.")


async def undo_queue_row(call: PageCall) -> Response:
    """Undo the last label, and put the row back into the queue."""
    queue = call.queue
    if not queue.labelled:
        raise ServiceError(409, "there is no label to undo")
    item, event = queue.labelled.pop()
    try:
        await call.change(UndoRequest, target=event)
    except ServiceError as error:
        if error.status != 409:  # 409: it was undone or forgotten elsewhere, so there is nothing left to undo
            queue.note(item, event)
        raise
    queue.put_back(item)
    ranked = await call.run(queue.rank, call.model)
    return await _render_queue(call, "queue_row.html", ranked.index(item), "The last label is undone.")


# -- learned rows ----------------------------------------------------------------------------------------------------


async def show_rows(call: PageCall) -> Response:
    return await _render_rows(call, "rows.html", call.query.get("phrase", ""))


async def search_rows(call: PageCall) -> Response:
    return await _render_rows(call, "rows_found.html", call.query.get("phrase", ""))


async def _render_rows(call: PageCall, template: str, phrase: str, done: str = "") -> Response:
    model, store = call.model, call.service.store
    found = []
    if phrase.strip():
        found = await call.run(page_state.search_learned_rows, store, model, phrase, MAX_FOUND_ROWS)
    return call.render(
        template,
        model=describe_model(model),
        has_base=model.entry.has_base,
        phrase=phrase,
        found=[(row, format_row(row.row)) for row in found],
        waiting=[(item, format_row(item.row)) for item in (call.queue.search(phrase) if phrase.strip() else [])],
        is_cut=len(found) == MAX_FOUND_ROWS,
        done=done,
    )


async def forget_rows(call: PageCall) -> Response:
    """Forget and erase every occurrence of the chosen rows, and drop them from the queue."""
    form, model, store = await call.read_form(), call.model, call.service.store
    found = await call.run(page_state.find_learned_rows, store, model, form.list_values("row"))
    rows = page_state.join_learned_rows(model, found)
    waiting = [item.row for item in call.queue.items.values() if str(item.id) in form.list_values("waiting")]
    if not found and not waiting:
        raise DataError("choose at least one row")
    if found:
        await call.change(ForgetRequest, rows=rows)
    call.queue.discard_forgotten((*rows.rows, *waiting))
    forgotten, left = format_count(len(rows) + len(waiting), "row"), format_count(call.model.n_rows, "row")
    done = f"Forgotten and erased: {forgotten}. The model knows {left}, and answers as if it had never known more."
    return await _render_rows(call, "rows_found.html", form.get("phrase"), done)


async def relabel_row(call: PageCall) -> Response:
    """Correct the label of a row: learn it with the new label, then forget it with the old one."""
    form, model, store = await call.read_form(), call.model, call.service.store
    label = call.read_class(form)
    known = await call.run(page_state.find_learned_rows, store, model, form.list_values("relabel")[:1])
    found = [row for row in known if not row.is_undone]
    if not found:
        raise ServiceError(409, "this row is not learned any more")
    old = found[0].label
    if old == label:
        raise DataError(f"the row has the label {label} already")
    rows = page_state.join_learned_rows(model, found)
    corrected = replace(rows, labels=(label,) * len(rows))
    await call.change(LearnRequest, rows=corrected)
    await call.change(ForgetRequest, rows=rows)
    done = f"The row is learned as {label} instead of {old}."
    return await _render_rows(call, "rows_found.html", form.get("phrase"), done)
