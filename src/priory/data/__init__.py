"""Example data that come with the package."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any


def inbox() -> tuple[list[dict[str, Any]], list[str]]:
    """About 300 short messages (sender, hour, number of links, text) and their labels: spam, urgent or normal.

    >>> rows, labels = inbox()
    >>> len(rows) == len(labels), sorted(set(labels)), list(rows[0])
    (True, ['normal', 'spam', 'urgent'], ['sender', 'hour', 'links', 'text'])
    """
    lines = list(csv.DictReader(files("priory").joinpath("data", "inbox.csv").read_text("utf-8").splitlines()))
    labels = [line.pop("label") for line in lines]
    numbers = ({"hour": int(line["hour"]) if line["hour"] else None, "links": int(line["links"])} for line in lines)
    return [{**line, **number} for line, number in zip(lines, numbers, strict=True)], labels
