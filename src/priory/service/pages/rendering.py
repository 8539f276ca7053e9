"""Render HTML from templates: user input is escaped, and the content security policy blocks foreign scripts."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

import priory
from priory.export.small_figures import draw_bar
from priory.models.ledger_formatting import DECIBANS_PER_NAT, find_widest, format_value
from priory.plots.canvas import render_inline_svg
from priory.workflows.callbacks import format_count

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


def render_template(name: str, values: dict[str, object]) -> str:
    return get_templates().get_template(name).render(values)


def make_page_response(html: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(html, status, {**PAGE_HEADERS, **(headers or {})}, "text/html; charset=utf-8")


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
