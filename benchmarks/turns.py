"""Busy writers of one model file take turns: how often each of them got the lock.

    python benchmarks/turns.py [--seconds 10] [--write]

Two and eight processes change the same file as often as they can, by `priory.storage.updating`. A fair lock lets each
of them do so about as often as the others. `--write` writes benchmarks/results/turns.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import priory as pr
from priory.storage import updating

READY: list[Barrier] = []
RESULTS = Path(__file__).parent / "results" / "turns.md"


def count_turns(writers: int, seconds: float) -> tuple[list[int], float]:
    """How often each of several processes changed a file, and the longest time that one of them waited."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.priory"
        pr.save(pr.TextClassifier(salt=1).partial_fit(["start"], ["ham"]), path)
        context = get_context("spawn")  # a fork would copy the threads of libraries half-way
        ready = context.Barrier(writers)
        with context.Pool(writers, set_barrier, (ready,)) as pool:
            given = [(path, number, seconds) for number in range(writers)]
            found = pool.starmap(_write_for, given, chunksize=1)
        learned = pr.load(path).class_count_.sum() - 1
        assert learned == sum(turns for turns, _ in found), "a change was lost"
        return [turns for turns, _ in found], max(waited for _, waited in found)


def set_barrier(barrier: Barrier) -> None:
    """Keep what the writers of this process wait at until all are there."""
    READY.append(barrier)


def _write_for(path: Path, number: int, seconds: float) -> tuple[int, float]:
    turns, longest = 0, 0.0
    pr.load(path).partial_fit(["imports what learning needs"], ["ham"])
    READY[0].wait()
    end = time.monotonic() + seconds
    while (asked := time.monotonic()) < end:
        with updating(path) as file:
            longest = max(longest, time.monotonic() - asked)
            file.model.partial_fit([f"writer{number}"], ["ham"])
            turns += 1
    return turns, longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = [
        "# Turns",
        "",
        f"`python benchmarks/turns.py --seconds {given.seconds:g} --write`: processes that change one file as often",
        "as they can. No change is lost, and whoever is quicker keeps nobody waiting.",
        "",
        "| writers | turns of each | the fewest, as a share of the most | longest wait |",
        "|--:|---|--:|--:|",
    ]
    for writers in (2, 8):
        turns, longest = count_turns(writers, given.seconds)
        each = ", ".join(map(str, sorted(turns)))
        lines.append(f"| {writers} | {each} | {min(turns) / max(turns):.2f} | {longest:.2f} s |")
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
