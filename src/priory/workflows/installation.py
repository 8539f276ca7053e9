"""What an installation can do: the tour of ``priory demo``, versions, packages, kernels and model files."""

from __future__ import annotations

import csv
import os
import platform
import tempfile
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import priory

TOUR_STEPS = [
    (
        "Train a model on messages: sender, hour, links and text",
        "train inbox.csv --target label --force --report inbox.html",
    ),
    ("Predict the labels of new messages", "predict inbox.priory new.csv"),
    ("Why is the first one spam? The evidence, in decibans", "explain inbox.priory --from new.csv --row 1"),
    (
        "Train a model on a table of numbers, each column with the family that explains it best",
        "train tumours.csv --target verdict --force",
    ),
    ("Write predictions to a file", "predict tumours.priory tumours.csv -o labelled.csv --force"),
    ("Someone withdraws their messages: forget them, exactly", "forget inbox.priory withdrawn.csv"),
    ("Learn them again", "learn inbox.priory withdrawn.csv"),
    ("Would the scores of a model of these messages be fair? Look for leakage", "audit inbox.csv --target label"),
    ("What does a model file contain, and what would it reveal?", "inspect inbox.priory"),
]


NEW_MESSAGES = [
    ["stranger", 3, 2, "Your parcel is waiting, confirm the delivery fee now"],
    ["colleague", 10, 0, "Could you send me the slides for tomorrow?"],
]


def write_tour_files(folder: Path) -> list[str]:
    """Write the files that the tour works on, and return their names."""
    from sklearn.datasets import load_breast_cancer

    messages, labels = priory.inbox()
    rows = [{**message, "label": label} for message, label in zip(messages, labels, strict=True)]
    _write_csv(folder / "inbox.csv", list(rows[0]), [list(row.values()) for row in rows])
    _write_csv(folder / "withdrawn.csv", list(rows[0]), [list(row.values()) for row in rows[:100]])
    _write_csv(folder / "new.csv", list(messages[0]), NEW_MESSAGES)
    scans = load_breast_cancer()
    names = [*map(str, scans.feature_names), "verdict"]
    tumours = [[*row.tolist(), str(scans.target_names[t])] for row, t in zip(scans.data, scans.target, strict=True)]
    _write_csv(folder / "tumours.csv", names, tumours)
    return ["inbox.csv", "new.csv", "tumours.csv", "withdrawn.csv"]


def _write_csv(path: Path, names: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])


REQUIRED_PACKAGES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "narwhals", "pyarrow", "click")
OPTIONAL_PACKAGES = {  # what each is for
    "pandas": "data frames",
    "polars": "data frames",
    "matplotlib": "figures and reports",
    "jinja2": "reports",
    "blackjax": "sampling",
    "onnx": "export to ONNX",
    "PyStemmer": "stemming",
    "stopwordsiso": "stop words",
    "cryptography": "signatures",
    "openpyxl": "Excel workbooks",
    "duckdb": "DuckDB databases",
}
KERNELS = ("exact", "products", "sparse", "tables", "text")
WORKS = "works"


def check_installation() -> tuple[Mapping[str, Mapping[str, str]], list[str]]:
    """Look at versions and packages, load the kernels, and train, save and load a small model.

    Returns what was found, by section and name, and the names of what does not work.
    """
    from priory.core.sharding import N_THREADS

    own = {"priory": priory.__version__, "Python": platform.python_version()}
    versions = own | {name: _find_version(name) for name in REQUIRED_PACKAGES}
    kernels = {name: _try_kernel(name) for name in KERNELS}
    checks = {"write, read and predict": _try_model_file()}
    sections = {
        "versions": versions,
        "optional packages": {name: _describe_optional(name, purpose) for name, purpose in OPTIONAL_PACKAGES.items()},
        "compiled kernels": kernels,
        "machine": {"system": platform.platform(), "processors": str(os.cpu_count()), "threads used": str(N_THREADS)},
        "checks": checks,
    }
    faults = [name for name, found in versions.items() if found == "missing"]
    return sections, faults + [n for n, found in (kernels | checks).items() if found != WORKS]


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _describe_optional(name: str, purpose: str) -> str:
    found = _find_version(name)
    return f"not installed ({purpose})" if found == "missing" else f"{found} ({purpose})"


def _try_kernel(name: str) -> str:
    try:
        import_module(f"priory.core._kernel.{name}")
    except ImportError as error:
        return f"does not load ({error})"
    return WORKS


def _try_model_file() -> str:
    """Whether a model can be trained, written, read and asked."""
    rows, labels = [{"n": float(i), "c": "ab"[i % 2]} for i in range(8)], ["x", "y"] * 4
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "check.priory")
            priory.save(priory.NaiveBayes(calibrate=False).fit(rows, labels), path)
            answers = priory.load(path).predict(rows).tolist()
    except OSError as error:
        return f"failed ({error})"
    return WORKS if answers == labels else f"gives wrong answers ({answers})"
