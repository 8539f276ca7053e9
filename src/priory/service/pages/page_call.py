"""A request to a web page: its sender, its form fields, and the page state, which lives as long as the service."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from priory.core.typing import ReturnT
from priory.errors import DataError, ServiceError
from priory.service.pages.label_queue import LabelQueue
from priory.service.pages.rendering import make_page_response, render_template
from priory.service.pages.training_job import TrainingJob
from priory.service.request_reading import Call
from priory.service.rows import Row, RowBatch, RowLabel
from priory.service.served_model import ServedModel
from priory.service.tokens import Identity
from priory.sources.cell_parsing import parse_number

if TYPE_CHECKING:
    from priory.service.application import Service
    from priory.service.pages.model_judgement import Judgement

MAX_FORM_FIELDS = 5000
MAX_JUDGEMENTS = 16  # kept in memory
MAX_TRAINING_JOBS = 64
CELL_PREFIX = "cell:"


@dataclass
class PageState:
    """State of the web pages in memory; it is lost when the service stops."""

    queues: dict[int, LabelQueue] = field(default_factory=dict)  # by model number
    # by (model number, version); a task, so that several requests wait for one evaluation
    judgements: OrderedDict[tuple[int, int], asyncio.Task[Judgement]] = field(default_factory=OrderedDict)
    jobs: OrderedDict[str, TrainingJob] = field(default_factory=OrderedDict)  # by job id, oldest first
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def add_job(self, job: TrainingJob) -> None:
        self.jobs[job.id] = job
        while len(self.jobs) > MAX_TRAINING_JOBS:
            self.jobs.popitem(last=False)


class FormFields:
    """The fields of a form; absent fields are empty."""

    def __init__(self, body: bytes) -> None:
        try:
            self._values = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
        except ValueError:
            raise ServiceError(422, "the form cannot be read") from None

    def get(self, name: str) -> str:
        return self._values.get(name, [""])[0]

    def list_values(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def read_number(self, name: str) -> int:
        value = self.get(name)
        if not value.isascii() or not value.isdigit() or len(value) > 16:
            raise DataError(f"{name} must be a whole number")
        return int(value)


class PageCall(Call):
    """A request to a web page."""

    def __init__(self, service: Service, request: Request, identity: Identity, state: PageState) -> None:
        super().__init__(service, request, identity)
        self.state = state

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query_params)

    @property
    def queue(self) -> LabelQueue:
        """The label queue of this model; queues of deleted models are dropped."""
        numbers = {model.entry.number for model in self.service.store.models.values()}
        queues = self.state.queues
        for number in queues.keys() - numbers:
            del queues[number]
        return queues.setdefault(self.model.entry.number, LabelQueue())

    async def read_form(self) -> FormFields:
        return FormFields(await self.request.body())

    async def run(self, function: Callable[..., ReturnT], *arguments: object) -> ReturnT:
        """Run a slow function in a thread."""
        return await self.service.run_slowly(function, *arguments)

    def render(self, template: str, **values: object) -> Response:
        """Render a page, or a part of one."""
        shared: dict[str, object] = {
            "identity": self.identity,
            "has_tokens": self.service.settings.tokens.is_required,
            "path": self.request.url.path,
        }
        return make_page_response(render_template(template, shared | values))

    def read_example(self, form: FormFields) -> str | Row:
        """Return the text or row of a form, depending on the kind of the model."""
        model = self.model
        if model.entry.kind == "text":
            text = form.get("text")
            if not text.strip():
                raise DataError("type or paste a text first")
            return text
        kinds = dict(model.estimator.column_kinds_) if model.is_fitted else {}
        row: Row = {name: read_cell(form.get(CELL_PREFIX + name), name, kind) for name, kind in kinds.items()}
        if all(cell is None for cell in row.values()):
            raise DataError("fill in at least one column")
        return row

    def read_class(self, form: FormFields) -> RowLabel:
        """Return the chosen label with its type in the model, or a new label."""
        given = form.get("label")
        if not given.strip():
            raise DataError("choose a class, or name a new one")
        # forms have strings only, but labels may be numbers
        known = {str(label): label for label in list_classes(self.model)}
        return known.get(given, given.strip())

    def make_batch(self, row: str | Row, label: RowLabel | None = None) -> RowBatch:
        return RowBatch(self.model.entry.kind, (row,), None if label is None else (label,))


def list_classes(model: ServedModel) -> list[RowLabel]:
    return model.estimator.classes_.tolist() if model.is_fitted else []


def read_cell(given: str, name: str, kind: str) -> str | int | float | None:
    """Parse a typed cell; an empty one is missing.

    >>> read_cell("4", "age", "number"), read_cell("4.5", "age", "number"), read_cell(" ", "town", "label")
    (4, 4.5, None)
    """
    if not given.strip():
        return None
    if kind != "number":
        return given
    number = parse_number(given)
    if number is None:
        raise DataError(f"column {name!r} holds numbers, not {given[:40]!r}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
