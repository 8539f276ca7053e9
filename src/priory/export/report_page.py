"""Render a report from its template and style sheet, with a strict content security policy."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from priory.errors import MissingDependencyError
from priory.export.small_figures import draw_bar
from priory.models.ledger_formatting import find_widest

if TYPE_CHECKING:
    from types import ModuleType

    from jinja2 import Template
    from markupsafe import Markup


def render_page(page: dict[str, object]) -> str:
    """Render the page; its content security policy allows only its own style sheet, by hash."""
    jinja2 = _import_jinja2()
    loader = jinja2.PackageLoader("priory.export", "templates")
    # escape everything by default; a misspelt name in the template is an error
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    style = environment.get_template("report.css").render()
    # the policy of the page names the style sheet by this hash, so injected styles are not applied
    digest = b64encode(sha256(style.encode()).digest()).decode()
    template: Template = environment.get_template("report.html")
    contents = list_contents(page)
    tools = {"draw_weight": _draw_weight, "find_widest": find_widest}
    return template.render(page, contents=contents, style=mark_safe(style), style_hash=digest, **tools)


def list_contents(page: dict[str, object]) -> list[tuple[str, str, bool]]:
    """Return the id and title of each section, and whether the page has it."""
    figures, scored = page["figures"], bool(page["scored"])
    assert isinstance(figures, dict)
    return [
        ("calibration", "Calibration", scored),
        ("answers", "Correct and wrong answers", scored),
        ("curve", "Learning curve", "curve" in figures),
        ("compared", "Beside other models", scored and bool(page["compared"])),
        ("evidence", "The strongest evidence", bool(page["strongest"])),
        ("mistakes", "The worst mistakes", bool(page["mistakes"])),
        ("columns", "The columns", bool(page["columns"])),
        ("learned", "What was learned", bool(page["tables"])),
        ("leakage", "Leakage", bool(page["findings"])),
        ("reproduce", "How to reproduce this", True),
    ]


def _draw_weight(weight: float, widest: float) -> Markup:
    """Draw the bar of a line of evidence."""
    return mark_safe(draw_bar(abs(weight) / widest, "for" if weight > 0 else "against"))


def mark_safe(html: str) -> Markup:
    """Mark HTML as already escaped."""
    safe: Markup = _import_jinja2().utils.markupsafe.Markup(html)
    return safe


def _import_jinja2() -> ModuleType:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError("a report needs jinja2: pip install 'priory[report]'.", name=error.name) from None
    return jinja2
