"""scikit-learn's own tests of naive Bayes, run on ours with nothing changed but the import."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import sklearn

SUITE = Path(sklearn.__file__).parent / "tests" / "test_naive_bayes.py"


@pytest.mark.slow
def test_scikit_learns_own_suite_passes_with_the_import_changed(tmp_path):
    text, changed = re.subn(r"from sklearn\.naive_bayes import", "from priory.naive_bayes import", SUITE.read_text())
    assert changed == 1
    # the tolerance that scikit-learn has since version 1.9
    text = text.replace("predict_log_proba(X2), log_prob_x_y)", "predict_log_proba(X2), log_prob_x_y, atol=1e-12)")
    (tmp_path / "test_suite.py").write_text(text)
    (tmp_path / "conftest.py").write_text("from sklearn.conftest import *\n")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}"]
    switches = {"SCIPY_ARRAY_API": "1", "SKLEARN_RUN_FLOAT32_TESTS": "1"}
    run = subprocess.run(
        [*command, "test_suite.py"], cwd=tmp_path, env=os.environ | switches, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout
    suite = ElementTree.parse(report).getroot()[0]
    assert int(suite.get("tests")) > 80
    reasons = {skipped.get("message") for skipped in suite.iter("skipped")}
    assert all("is not installed" in reason for reason in reasons), reasons
