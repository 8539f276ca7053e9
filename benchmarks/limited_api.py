"""What one wheel for all versions of Python would cost: the kernels with Python's limited API beside those without.

    python benchmarks/limited_api.py [--rounds 6] [--write]

Both are built from this tree in temporary folders, which takes minutes. With the limited API the text kernel cannot
read the characters of a string in place, so it reads their UTF-8. Processes of both take turns; each figure is the
least processor time of all rounds. `--write` writes benchmarks/results/limited_api.md.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).parent / "results" / "limited_api.md"
HEADER = """# The limited API of Python

`python benchmarks/limited_api.py --write`: least processor time, in microseconds, of the same calls with kernels built
for one version of Python and with kernels built once for all (`abi3`), on one thread.

| | one version | abi3 | ratio |
|---|---:|---:|---:|
"""
CHANGES = {  # what the limited API lacks, by file and pattern
    "setup.py": [(r"depends=INCLUDED\)", "depends=INCLUDED, py_limited_api=True, define_macros=LIMITED)")],
    "text.pyx": [
        (r"PyBytes_AS_STRING, PyBytes_GET_SIZE", "PyBytes_AsString, PyBytes_Size"),
        (
            r"    void\* PyUnicode_DATA.*\n    int PyUnicode_KIND.*\n    Py_ssize_t PyUnicode_GET_LENGTH.*\n",
            "    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*)\n",
        ),
    ],
}
READ_TEXT = [
    (
        r"d\.data, d\.n = <const uint8_t\*>PyUnicode_DATA\(document\), PyUnicode_GET_LENGTH\(document\)\n"
        r"( +)d\.width = PyUnicode_KIND\(document\)",
        r"d.data = <const uint8_t*>PyUnicode_AsUTF8AndSize(document, <Py_ssize_t*>&d.n)\n\1d.width = 0",
    ),
    ("PyBytes_AS_STRING", "PyBytes_AsString"),
    ("PyBytes_GET_SIZE", "PyBytes_Size"),
]
CHANGES |= {"text_open.pxi": READ_TEXT, "text_rule.pxi": READ_TEXT}
LIMITED = 'LIMITED = [("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")]\n'


def change(path: Path) -> None:
    text = path.read_text()
    for pattern, replacement in CHANGES[path.name]:
        text, n = re.subn(pattern, replacement, text)
        assert n, f"{path.name} has changed: {pattern}"
    path.write_text(text)


def build(folder: Path, is_limited: bool) -> Path:
    """A copy of the package with compiled kernels; the folder to import it from."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "*.egg-info"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    if is_limited:
        for path in [folder / "setup.py", *(folder / "src/priory/core/_kernel").glob("text*.p*x*")]:
            if path.name in CHANGES:
                change(path)
        (folder / "setup.py").write_text(
            (folder / "setup.py").read_text().replace("def declare_extension", f"{LIMITED}\n\ndef declare_extension")
        )
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    tools = ["setuptools>=77,<85", "Cython>=3.2,<4"]
    subprocess.run([environment / "bin" / "pip", "install", "-q", *tools], check=True)
    command = [environment / "bin" / "python", "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "src"


def find_least_time(action: Callable[[], object], n_calls: int) -> float:
    action()
    times = []
    for _ in range(15):
        start = time.process_time()
        for _ in range(n_calls):
            action()
        times.append((time.process_time() - start) / n_calls)
    return 1e6 * min(times)


def measure() -> dict[str, float]:
    import numpy as np

    from priory import NaiveBayes, TextClassifier

    rng, n = np.random.default_rng(1), 4000
    columns = {f"x{i}": rng.normal(size=n) for i in range(6)}
    columns |= {f"c{i}": rng.choice(list("abcdef"), n) for i in range(6)}
    y = np.where(columns["x0"] + (columns["c0"] == "a") > 0.3, "yes", "no")
    row = {name: cells[0].item() for name, cells in columns.items()}
    words = np.array([f"w{i}" for i in range(3000)])
    texts = [" ".join(words[np.minimum(rng.zipf(1.3, 40) - 1, 2999)]) for _ in range(3000)]
    labels = np.where(rng.random(3000) < 0.5, "a", "b")
    table, default = NaiveBayes(calibrate=False).fit(columns, y), NaiveBayes().fit(columns, y)
    text = TextClassifier(calibrate=False).fit(texts, labels)
    actions = {
        "one row of a table, naive Bayes": (lambda: table.predict_proba_one(row), 300),
        "one row of a table, default": (lambda: default.predict_proba_one(row), 200),
        "4,000 rows, default": (lambda: default.predict_proba(columns), 2),
        "fit 4,000 rows, naive Bayes": (lambda: NaiveBayes(calibrate=False).fit(columns, y), 1),
        "learn and forget one row": (lambda: table.learn_one(row, "yes").forget_one(row, "yes"), 200),
        "one text": (lambda: text.predict_proba_one(texts[0]), 300),
        "3,000 texts": (lambda: text.predict_proba(texts), 2),
        "fit 3,000 texts": (lambda: TextClassifier(calibrate=False).fit(texts, labels), 1),
        "learn and forget one text": (lambda: text.learn_one(texts[1], "a").forget_one(texts[1], "a"), 200),
    }
    return {name: find_least_time(*action) for name, action in actions.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure()))
        return
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as limited:
        trees = [build(Path(plain), is_limited=False), build(Path(limited), is_limited=True)]
        found: list[list[dict[str, float]]] = [[], []]
        for number in range(given.rounds):
            for which in (0, 1) if number % 2 else (1, 0):
                code = f"import sys; sys.path.insert(0, {str(trees[which])!r}); import limited_api; limited_api.main()"
                command = [sys.executable, "-c", code, "--measure"]
                done = subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
                found[which].append(json.loads(done.stdout))
    lines = []
    for name in found[0][0]:
        one, other = (min(times[name] for times in each) for each in found)
        lines.append(f"| {name} | {one:,.1f} | {other:,.1f} | {other / one:.2f} |\n")
    print("".join(lines), end="")
    if given.write:
        RESULT.write_text(HEADER + "".join(lines))


if __name__ == "__main__":
    main()
