"""Model files under crashes: kill -9 and failing disks at every writing system call, many processes learning at once.

    python benchmarks/crashes.py [every]          # every n-th point; 1, the default, is all of them

Needs strace. A process that has imported everything forks; strace attaches to the child and injects the fault at the
n-th call of one system call. Afterwards the file must be the old one or the new one, complete, and the next change must
succeed and leave nothing behind. Writes benchmarks/results/crashes.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import priory as pr
import priory.workflows.training  # so that no child has to import it
from priory.cli import main as command
from priory.storage import updating

CALLS = "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,fchmod,fchown,rename,renameat,renameat2,unlink,unlinkat"
CALLS += ",flock"
FAULTS = ("signal=KILL", "error=ENOSPC", "error=EIO")
MANY = " ".join(f"word{i}" for i in range(5000))  # so that the file is written in several pieces
OLD = ["win cash now", MANY, "lunch at noon"], ["spam", "spam", "ham"]
NEW = ["free lunch", "see you at noon"], ["spam", "ham"]
RESULT = Path(__file__).parent / "results" / "crashes.md"


def learned(*batches: tuple[list[str], list[str]]) -> pr.TextClassifier:
    model = pr.TextClassifier(salt=1)
    for batch in batches:
        model.partial_fit(*batch)
    return model


def save(path: Path) -> None:
    pr.save(learned(OLD, NEW), path)


def learn(path: Path) -> None:
    with updating(path) as file:
        file.model = (file.model or learned()).partial_fit(*NEW)


def forget(path: Path) -> None:
    with updating(path) as file:
        file.model.forget(OLD[0][:1], OLD[1][:1])


def merge(path: Path) -> None:
    with updating(path) as file:
        file.model = file.model + learned(NEW)


JOBS: list[tuple[Callable[[Path], None], bool]] = [  # and whether there is a file before it starts
    (save, False),
    (save, True),
    (learn, False),
    (learn, True),
    (forget, True),
    (merge, True),
]


def state(path: Path) -> str:
    """The whole content of a model file as text; "" if there is no file."""
    if not path.exists():
        return ""
    model = pr.load(path)
    words = model.statistics_.parts[0].sort_tokens()
    return repr((words.tokens(), words.counts.tolist(), words.n.tolist(), model.statistics_.n.tolist()))


def struck(job: Callable[[Path], None], path: Path, *options: str) -> tuple[int, str]:
    """Run the job in a child process under strace; return how it ended and the log of strace."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(read, 1)
            job(path)
            os._exit(0)
        except OSError:
            os._exit(1)
        finally:
            os._exit(2)
    command = ["strace", "-f", "-qq", "-p", str(child), "-e", f"trace={CALLS}", *options]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log) as strace:
        while "TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text():
            time.sleep(0.001)
        os.write(write, b"!")
        _, status = os.waitpid(child, 0)
        strace.wait()
        log.seek(0)
        seen = log.read()
    os.close(read)
    os.close(write)
    return os.waitstatus_to_exitcode(status), seen


def warmed(job: Callable[[Path], None], before: bool) -> None:
    """Do the job once in this process, so that no child has to import anything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.priory"
        if before:
            pr.save(learned(OLD), path)
        job(path)
        state(path)


def points(job: Callable[[Path], None], before: bool) -> Iterator[tuple[str, int]]:
    """Every system call of the job that could leave something unfinished."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.priory"
        if before:
            pr.save(learned(OLD), path)
        _, seen = struck(job, path)
    for name, times in Counter(re.findall(r"^(?:\[pid +\d+\] )?(\w+)\(", seen, re.M)).items():
        yield from ((name, n) for n in range(1, times + 1))


def survived(job: Callable[[Path], None], before: bool, fault: str, name: str, n: int) -> str:
    """Inject one fault; return whether the file is "old" or "new" (AssertionError if it is neither)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.priory"
        if before:
            pr.save(learned(OLD), path)
        old = state(path)
        twin = Path(folder) / "twin.priory"
        if before:
            twin.write_bytes(path.read_bytes())
        job(twin)
        new = state(twin)
        twin.unlink()
        code, _ = struck(job, path, "-e", f"inject={name}:{fault}:when={n}")
        now = state(path)
        assert now in (old, new), f"{job.__name__} broke at {name} {n} by {fault}"
        assert code != 0 or now == new, f"{job.__name__} reported success at {name} {n} by {fault}"
        assert code != 2, f"{job.__name__} failed without saying why at {name} {n} by {fault}"
        began = time.monotonic()
        learn(path)
        assert time.monotonic() - began < 1.0, "somebody dead was waited for"
        assert os.listdir(folder) == [path.name], f"left behind at {name} {n} by {fault}: {os.listdir(folder)}"
        return "new" if now == new else "old"


def all_struck(every: int = 1) -> list[tuple[str, str, int, int, int]]:
    """For each job and fault: the number of points tried, and how many left the old file and the new one."""
    rows = []
    for job, before in JOBS:
        warmed(job, before)
        tried = list(points(job, before))[::every]
        for fault in FAULTS:
            found = Counter(survived(job, before, fault, name, n) for name, n in tried)
            what = f"{job.__name__}, {'replacing a file' if before else 'no file yet'}"
            rows.append((what, fault, len(tried), found["old"], found["new"]))
    return rows


Learner = Callable[[Path, str, list[str]], None]


def by_library(path: Path, word: str, labels: list[str]) -> None:
    with updating(path) as file:
        file.model = (file.model or learned()).partial_fit([word] * len(labels), labels)


def by_command(path: Path, word: str, labels: list[str]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("label,text\n" + "".join(f"{label},{word}\n" for label in labels))
        file.flush()
        code = command(["learn", str(path), file.name, "--target", "label", "--text", "text", "--json"])
    if code:
        raise OSError(code, "priory learn failed")


def learners(learner: Learner, many: int, rounds: int, existing: bool) -> float:
    """Let several processes learn two documents at a time, all at once; return the number of documents in the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.priory"
        if existing:
            pr.save(learned(OLD), path)
        children = []
        for number in range(many):
            child = os.fork()
            if child == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                try:
                    for _ in range(rounds):
                        learner(path, f"process{number}", ["ham", "spam"])
                    os._exit(0)
                finally:
                    os._exit(1)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert codes == [0] * many, codes
        assert os.listdir(folder) == [path.name]
        model = pr.load(path)
        words = dict(zip(model.vocabulary_, model.counts_.sum(axis=1).tolist(), strict=True))
        assert all(words[f"process{number}"] == 2 * rounds for number in range(many))
        return float(model.class_count_.sum()) - 3 * existing


def main(every: int = 1) -> None:
    lines = [
        "# Crashes",
        "",
        "`python benchmarks/crashes.py`: every write-class system call of each job is struck once by each fault.",
        "Afterwards the file is the old or the new one, whole; the next change succeeds and leaves nothing behind.",
        "",
        "| job | fault | points | old file | new file | broken |",
        "|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(map(str, row))} | 0 |" for row in all_struck(every)]
    lines += ["", "Learners at once, each learning two documents a round:", ""]
    lines += ["| learners | by | rounds | starting from | documents remembered |", "|---|---|---|---|---|"]
    rounds = max(1, 50 // every)
    for learner, name in ((by_library, "`updating`"), (by_command, "`priory learn`")):
        for existing in (False, True):
            found = learners(learner, 8, rounds, existing)
            assert found == 8 * rounds * 2
            lines.append(f"| 8 | {name} | {rounds} | {'a file' if existing else 'no file'} | {found:g} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if every == 1:
        RESULT.write_text(text)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
