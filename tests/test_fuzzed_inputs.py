"""Made-up inputs are answered or refused in one line; benchmarks/fuzz_inputs.py tries thousands of them."""

import subprocess
import sys

import pytest

import fuzz_inputs
from paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_made_up_inputs_are_answered_or_refused_in_one_line(seed):
    command = [sys.executable, ROOT / "benchmarks" / "fuzz_inputs.py", "--runs", "150", "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.endswith(", 0 wrong\n")


# cases that once ended the process, raised an error of another library, or answered NaN
@pytest.mark.parametrize(
    ("seed", "case"),
    [(1, 162), (3, 989), (1, 574), (1, 689), (1, 750), (1, 906), (2, 381), (3, 241), (4, 73), (4, 334), (7, 320)],
)
@pytest.mark.filterwarnings("ignore")
def test_a_case_that_went_wrong_before_goes_right(seed, case):
    assert set(fuzz_inputs.run_case(seed * 1_000_000 + case)) <= {"answered", "refused"}
