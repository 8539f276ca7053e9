"""The models of ``priory serve --demo``: a small inbox as texts and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from priory.data import inbox
from priory.service.changes import CreateRequest, LearnRequest
from priory.service.rows import ModelKind, Row, RowBatch

if TYPE_CHECKING:
    from priory.service.application import Service

DEMO_TEACHER = "demo"


def create_demo_models(service: Service) -> None:
    """Create the models ``inbox`` (a table with a column of texts) and ``messages`` (texts), if they do not exist."""
    rows, labels = inbox()
    texts = tuple(str(row["text"]) for row in rows)
    table: tuple[Row, ...] = tuple(rows)
    models: list[tuple[str, ModelKind, tuple[str | Row, ...]]] = [
        ("messages", "text", texts),
        ("inbox", "table", table),
    ]
    for name, kind, content in models:
        if name not in service.store.models:
            service.writer.submit(CreateRequest(name, DEMO_TEACHER, kind=kind)).result()
            batch = RowBatch(kind, content, tuple(labels))
            service.writer.submit(LearnRequest(name, DEMO_TEACHER, rows=batch)).result()
