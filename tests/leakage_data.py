"""Tables and texts without leaks, and how tests look for what was put in."""

import numpy as np
import pandas as pd
import pytest

from paths import DATA
from priory.leakage import Severity
from priory.leakage.audited_tables import read_audit_data
from priory.leakage.findings import confirm_suspicions

WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven"]
WORDS += ["inlet", "jetty", "knoll", "ledge", "marsh", "notch", "ocean", "prairie"]


def needs(name):
    return pytest.mark.skipif(not (DATA / name).exists(), reason=f"{name} is not there")


def loaded(name):
    import datasets

    return datasets.text(name)


def table(rows=1200, seed=0, classes=2):
    """A clean table: four columns that know a little, one of labels, one of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=rows) + 0.5 * j / 4 * y for j in range(5)})
    frame["shape"] = np.array(["round", "flat", "long"])[
        (rng.integers(3, size=rows) + (rng.random(rows) < 0.2) * y) % 3
    ]
    frame["y"] = np.array(["no", "yes", "maybe"])[y]
    return frame


def texts(rows=400, seed=0, length=30):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=rows)
    words = np.array(WORDS)
    weights = np.ones((2, len(words)))
    weights[1, :4] = 2
    weights /= weights.sum(axis=1, keepdims=True)
    return [" ".join(rng.choice(words, length, p=weights[c])) for c in y], np.array(["no", "yes"])[y].tolist()


def suspected(finder, train, test=None, target=None):
    """What one finder says, where the whole audit of a large collection would take the test's time."""
    return confirm_suspicions(finder.find(read_audit_data(train, test, target, None, None, None)))


def kinds(findings, least=Severity.LOW):
    return {finding.kind for finding in findings if finding.severity >= least}


def only(findings, kind):
    found = findings.of(kind)
    assert len(found) == 1, str(findings)
    return found[0]
