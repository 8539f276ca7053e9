"""A little of what benchmarks/power_loss.py tries in full: the power fails while the journal writes."""

import subprocess
import sys

import pytest

from paths import ROOT

pytest.importorskip("apsw", reason="needs apsw, whose file systems can lose writes")


def run_script(*options):
    command = [sys.executable, ROOT / "benchmarks" / "power_loss.py", "--crashes", "100", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_when_the_power_fails_no_acknowledged_change_is_lost_and_no_erased_row_is_left():
    done = run_script()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none by half, no erased row left | 100 |" in done.stdout


def test_losses_are_found_if_nothing_is_synchronised():
    assert run_script("--unsafe").returncode == 1
