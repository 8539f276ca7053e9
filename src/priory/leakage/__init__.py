"""The leakage audit: does a score depend on information that is not available when the model is used?

A finder is a module with a function `find` that examines the data and yields suspicions. All finders use the same data,
and their suspicions are tested together (see `findings`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules

from sklearn.base import BaseEstimator

from priory.leakage import finders
from priory.leakage.audit_tables import AuditData
from priory.leakage.audited_tables import ColumnLike, TableLike, read_audit_data
from priory.leakage.findings import Effect, Finding, Findings, Severity, Suspicion, confirm_suspicions

__all__ = ["Effect", "Finding", "Findings", "Severity", "audit"]


def list_finders() -> list[Callable[[AuditData], Iterable[Suspicion]]]:
    """Return the function `find` of every module in `finders`."""
    modules = sorted(module.name for module in iter_modules(finders.__path__))
    return [import_module(f"{finders.__name__}.{name}").find for name in modules]


def audit(
    train: TableLike,
    test: TableLike | None = None,
    target: ColumnLike | None = None,
    groups: ColumnLike | None = None,
    time: ColumnLike | None = None,
    pipeline: BaseEstimator | None = None,
) -> Findings:
    """Find leakage of the label, or of the test table, into the training data.

    Parameters
    ----------
    train, test : tables (pandas, polars, pyarrow, NumPy, dicts) or lists of texts
        With ``train`` alone the audit reports what would leak if the table were split.
    target, groups, time : name of a column, values of the training rows, or a pair of values for both tables
        The labels to be predicted (a numeric target with more than 20 values is cut into fifths); the group of each
        row, such as a patient; the time of each row. All are optional; finders that need a missing one are skipped.
    pipeline : a fitted scikit-learn pipeline or transformer, optional
        The audit then checks whether any step was fitted to the test rows.

    Returns
    -------
    Findings
        The most severe first. The probability that a clean table causes any finding based on a test is at most 1 %.

    Examples
    --------
    >>> rows = [{"age": 20 + i * 7 % 50, "discharged": i % 3 // 2} for i in range(300)]
    >>> found = audit(rows, target=[["ill", "well"][row["discharged"]] for row in rows])
    >>> found[0].severity, found[0].columns, found.exit_code
    (<Severity.HIGH: 3>, ('discharged',), 3)
    """
    data = read_audit_data(train, test, target, groups, time, pipeline)
    return confirm_suspicions(suspicion for find in list_finders() for suspicion in find(data))
