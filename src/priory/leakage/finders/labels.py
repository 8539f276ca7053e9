"""Find labels that were probably meant to be one class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.core.input_guard import describe_similar_labels
from priory.leakage.audit_tables import AuditData
from priory.leakage.findings import Finding, Severity, Suspicion


def find(data: AuditData) -> Iterator[Suspicion]:
    if data.class_codes is None:
        return
    counts = np.bincount(data.class_codes[data.class_codes >= 0], minlength=len(data.classes))
    what = describe_similar_labels(dict(zip(data.classes, counts.tolist(), strict=True)))
    if what:
        advice = "Look at them: one spelling for each class, or leave them if they differ."
        yield Suspicion(None, lambda: Finding(Severity.MEDIUM, "labels", what, advice))
