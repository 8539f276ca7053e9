"""The leakage audit: does the score rest on what will not be there when it counts?

    leakage: anything learned that depends on rows, or on knowledge, that the model will not have

A finder is a module with a function `find`: it looks at the evidence and hands in suspicions. All finders look at the
same evidence, and their suspicions are judged together (see `finding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from priory.leakage.audit_tables import AuditData
from priory.leakage.finders import boilerplate, columns, drift, duplicates, identifiers, preparation, shortcuts, times
from priory.leakage.finders import groups as grouping
from priory.leakage.finders import near_duplicates as likeness
from priory.leakage.findings import Effect, Finding, Findings, Severity, Suspicion, confirm_suspicions
from priory.leakage.inputs import read_audit_data

__all__ = ["Effect", "Finding", "Findings", "Severity", "audit"]

LEAKAGE_FINDERS: tuple[Callable[[AuditData], Iterable[Suspicion]], ...] = (
    duplicates.find,
    likeness.find,
    grouping.find,
    times.find,
    columns.find,
    identifiers.find,
    preparation.find,
    drift.find,
    shortcuts.find,
    boilerplate.find,
)


def audit(
    train: Any, test: Any = None, target: Any = None, groups: Any = None, time: Any = None, pipeline: Any = None
) -> Findings:
    """What leaks from the label, or from the test table, into what a model can learn.

    Parameters
    ----------
    train, test : tables (pandas, polars, pyarrow, NumPy, dicts) or lists of texts
        With ``train`` alone the audit looks for what would leak once it is split.
    target, groups, time : a column's name, the values of the training rows, or a pair for both tables
        What is to be predicted (a number with more than 20 values is cut into fifths); which rows belong together,
        such as a patient's; when a row was known. All are optional: what cannot be asked without them is not asked.
    pipeline : a fitted scikit-learn pipeline or transformer, optional
        Whether anything in it was fitted to the test rows.

    Returns
    -------
    Findings
        The gravest first. The chance that a clean table raises any finding that rests on a test is at most 1 %.

    Examples
    --------
    >>> rows = [{"age": 20 + i * 7 % 50, "discharged": i % 3 // 2} for i in range(300)]
    >>> found = audit(rows, target=[["ill", "well"][row["discharged"]] for row in rows])
    >>> found[0].severity, found[0].columns, found.exit_code
    (<Severity.HIGH: 3>, ('discharged',), 3)
    """
    evidence = read_audit_data(train, test, target, groups, time, pipeline)
    return confirm_suspicions(suspicion for find in LEAKAGE_FINDERS for suspicion in find(evidence))
