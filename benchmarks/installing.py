"""What installing costs: seconds of processor time and megabytes, of the wheel with its extras and of peers.

    python benchmarks/installing.py [--wheel dist/priory-*.whl] [--demo] [--write]

Each package goes into a new environment, with `pip install` from wheels that are on this machine already (they are
downloaded first, which is not counted), and no compiler is found. `--demo` also runs `make demo` in a fresh clone of
the last commit, where the kernels are compiled. `--write` writes benchmarks/results/installing.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "installing.md"
ROOT = Path(__file__).resolve().parents[1]
PEERS = ["scikit-learn", "river", "datasette"]
HEADER = """# What installing costs

`python benchmarks/installing.py --demo --write`: processor seconds (user and system) of `pip install` of wheels that
were downloaded before, into new environments without a compiler; megabytes of what was installed, without pip.
`make demo` is everything in a fresh clone: the environment, its packages, the kernels compiled, and the tour. The last
row is the processor time of importing NumPy, SciPy and scikit-learn, on the same machine, which other work used too.

| | processor seconds | megabytes | packages |
|---|---:|---:|---:|
"""


def measure(action: Callable[[], object]) -> float:
    """The processor seconds of the processes that an action starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(*command: str | Path, **options: object) -> None:
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def list_packages(environment: Path) -> tuple[float, int]:
    """The megabytes and the number of the packages of an environment, without pip and setuptools."""
    (folder,) = environment.glob("lib/python*/site-packages")
    own = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
    files = [
        file
        for top in folder.iterdir()
        if not top.name.startswith(own)
        for file in ([top] if top.is_file() else top.rglob("*"))
        if file.is_file()
    ]
    packages = [entry for entry in folder.glob("*.dist-info") if not entry.name.startswith(own)]
    return sum(file.stat().st_size for file in files) / 1e6, len(packages)


def measure_package(wanted: str, folder: Path) -> tuple[float, float, int]:
    python, wheels, empty = folder / "venv" / "bin" / "python", folder / "wheels", folder / "empty"
    empty.mkdir()
    run(sys.executable, "-m", "venv", folder / "venv")
    run(python, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", wheels, wanted)
    install = ["-m", "pip", "install", "-q", "--no-index", "--find-links", wheels, wanted]
    seconds = measure(lambda: run(python, *install, env={**os.environ, "PATH": str(empty), "CC": "false"}))
    return seconds, *list_packages(folder / "venv")


def measure_demo(folder: Path) -> tuple[float, float, int]:
    run("git", "clone", "-q", ROOT, folder / "clone")
    seconds = measure(lambda: run("make", "demo", cwd=folder / "clone"))
    return seconds, *list_packages(folder / "clone" / ".venv")


def measure_all(wheel: Path, demo: bool) -> list[str]:
    jobs = {f"`pip install priory{extra}`": f"{wheel}{extra}" for extra in ("", "[report]", "[serve]")}
    jobs |= {f"`pip install {peer}`": peer for peer in PEERS}
    lines = []
    for name, wanted in [*jobs.items(), *([("`make demo`", None)] if demo else [])]:
        with tempfile.TemporaryDirectory() as folder:
            seconds, megabytes, packages = (
                measure_demo(Path(folder)) if wanted is None else measure_package(wanted, Path(folder))
            )
        lines.append(f"| {name} | {seconds:.1f} | {megabytes:.0f} | {packages} |")
        print(lines[-1], flush=True)
    lines.append(f"| importing | {measure(lambda: run(sys.executable, '-c', 'import sklearn.pipeline')):.1f} | | |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="without it, the newest in dist (make wheel)")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    built = options.wheel or max((ROOT / "dist").glob("*.whl"), key=lambda path: path.stat().st_mtime, default=None)
    if built is None:
        sys.exit("there is no wheel in dist: make wheel")
    lines = measure_all(built.resolve(), options.demo)
    if options.write:
        RESULTS.write_text(HEADER + "\n".join(lines) + "\n")
