"""A little of what benchmarks/service_crashes.py and service_fuzz.py try in full: kill -9, bad disks, bad requests."""

import shutil
import subprocess
import sys

import pytest

from paths import ROOT

CRASHES, FUZZ = ROOT / "benchmarks" / "service_crashes.py", ROOT / "benchmarks" / "service_fuzz.py"


def may_trace():
    return shutil.which("strace") and subprocess.run(["strace", "-qq", "-e", "trace=none", "true"]).returncode == 0


def run_script(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")
def test_killed_under_load_nothing_is_lost_and_nothing_is_doubled():
    assert "| 5 | " in run_script(CRASHES, "load", 5, 500)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")
def test_a_backup_under_load_restores_what_was_acknowledged_and_nothing_forgotten():
    assert "| 3 | " in run_script(CRASHES, "backups", 3)


@pytest.mark.slow
@pytest.mark.skipif(not may_trace(), reason="needs strace and the right to use it")
def test_struck_at_a_writing_system_call_nothing_is_lost_and_nothing_is_left_behind():
    assert "| signal=KILL | " in run_script(CRASHES, "calls", 40)


@pytest.mark.slow
def test_hostile_requests_get_no_500_and_no_secret():
    assert "No 500, no traceback, no leak" in run_script(FUZZ, 800)
