"""A request to the page and its HTML: who sends it, the fields of its form, templates that escape what was typed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

import priory
from priory.errors import DataError, ServiceError
from priory.export.report_page import draw_bar
from priory.model.ledger_output import DECIBANS_PER_NAT, find_widest, format_value
from priory.plots.canvas import render_inline_svg
from priory.service.labelled_rows import Row, RowBatch, RowLabel
from priory.service.messages import Call, parse_whole_number
from priory.service.model_store import ServedModel
from priory.service.pages.page_state import LabelQueue, PageState
from priory.service.tokens import Identity
from priory.sources.cell_parsing import parse_number
from priory.workflows.model_files import format_count

if TYPE_CHECKING:
    from priory.service.server import Service


PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",  # with "no-referrer" browsers hide the origin of our own forms
}
STATIC_FILES = files("priory.service.pages") / "static"
STATIC_TYPES = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "figures.css": "text/css",
    "course.js": "text/javascript",
} | {path.name: "text/javascript" for path in STATIC_FILES.iterdir() if path.name.startswith("figure-")}
STATIC_SECONDS = 3600


@cache
def get_templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("priory.service.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt name in a template is an error
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": format_count,
        "cell": format_value,
        "percent": format_percent,
        "decibans": lambda nats: f"{nats * DECIBANS_PER_NAT:+.1f}",
        "moment": format_moment,
    }
    environment.globals |= {"draw_bar": render_bar, "find_widest": find_widest, "version": priory.__version__}
    return environment


def render_view(
    service: Service,
    request: Request,
    visitor: Identity | None,
    template: str,
    values: Mapping[str, object],
    status: int = 200,
) -> Response:
    """Render a page, or a part of one."""
    has_tokens = service.settings.tokens.is_required
    html = (
        get_templates()
        .get_template(template)
        .render(values, identity=visitor, has_tokens=has_tokens, path=request.url.path)
    )
    return Response(html, status, PAGE_HEADERS, "text/html; charset=utf-8")


@cache
def read_static_file(name: str) -> bytes:
    return STATIC_FILES.joinpath(name).read_bytes()


def render_figure(draw: Callable[[], Any], title: str) -> Markup:
    """Render a figure of ``priory.plots`` as inline SVG."""
    return Markup(render_inline_svg(draw, title))  # matplotlib escapes the texts


def render_bar(share: float, kind: str = "for") -> Markup:
    return Markup(draw_bar(share, kind))


def format_percent(share: float) -> str:
    """Format a probability; only exact 0 and 1 are shown as 0 % and 100 %.

    >>> format_percent(0.123), format_percent(0.99999), format_percent(1.0), format_percent(0.00001)
    ('12.3 %', '> 99.9 %', '100 %', '< 0.1 %')
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    if not 0.0005 <= share < 0.9995:
        return "> 99.9 %" if share > 0.5 else "< 0.1 %"
    return f"{100 * share:.1f} %"


def format_moment(seconds: float) -> str:
    """Format a time in the time zone of the server.

    >>> len(format_moment(0.0))
    19
    """
    return time.strftime("%Y-%m-%d %H:%M:%S", datetime.fromtimestamp(seconds, UTC).astimezone().timetuple())


MAX_FORM_FIELDS = 5000
CELL_PREFIX = "cell:"


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
        return parse_whole_number(self.get(name), name)


class PageCall(Call):
    """A request to a web page."""

    def __init__(self, service: Service, request: Request, identity: Identity, state: PageState) -> None:
        super().__init__(service, request, identity)
        self.state = state

    @property
    def key(self) -> None:
        """Pages have no idempotency key: one request may make two changes."""
        return None

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

    def render(self, template: str, **values: object) -> Response:
        """Render a page, or a part of one."""
        return render_view(self.service, self.request, self.identity, template, values)

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
