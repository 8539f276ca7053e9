"""Five jobs from files to scores: Priory's commands, and the scikit-learn script that does the same.

python benchmarks/jobs.py [--only mail] [--write]      # --write: benchmarks/results/jobs.md

Both read the same files and are judged on the same rows, which neither has learned. Times are those of whole processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
import datasets
from streaming import load

RESULTS = Path(__file__).parent / "results" / "jobs.md"
SCRIPTS = Path(__file__).parent / "jobs"
SCORES = ("accuracy", "log_loss", "cost")


class Job(NamedTuple):
    """What is done: files to begin with, and the commands, of which the last prints the scores."""

    title: str
    prepare: Callable[[Path], None]
    commands: tuple[str, ...]


class Outcome(NamedTuple):
    """Lines to type, seconds on the clock and of all cores, and scores."""

    lines: int
    wall: float
    cpu: float
    scores: dict[str, float]


# -- files -------------------------------------------------------------------------------------------------------------


def write_mail(folder: Path) -> None:
    """SpamAssassin's corpus: 70 % of the messages to learn from, 30 % to judge by."""
    rng = random.Random(0)
    archive = datasets.DATA / "spamassassin" / "spamassassin-publiccorpus.tar.gz"
    for number, ((_, kind, _), content) in enumerate(datasets.members(archive)):
        part, label = ("train" if rng.random() < 0.7 else "test"), ("spam" if "spam" in kind else "ham")
        place = folder / part / label / f"{number:05d}.eml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def write_census(folder: Path) -> None:
    for part in ("train", "test"):
        table = pd.read_csv(datasets.DATA / "adult" / f"adult_{part}.csv.gz")
        table.columns = [*table.columns[:-1], "income"]
        table.to_csv(folder / f"{part}.csv", index=False)


def write_news(folder: Path) -> None:
    archive = datasets.DATA / "20newsgroups_bydate" / "20news-bydate.tar.gz"
    for (part, group, name), content in datasets.members(archive):
        place = folder / part.removeprefix("20news-bydate-") / group / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


TEAMS = ("accounts", "hardware", "network")
FILLERS = "please help me with my since today again"
WORDS = {
    "accounts": "password login locked account reset code",
    "hardware": "printer screen toner keyboard broken noise",
    "network": "wifi slow connection vpn drops cable",
}


def make_tickets(n_rows: int, seed: int, shift: int = 0) -> pd.DataFrame:
    """Tickets of a help desk; ``shift`` moves the words that each team is written to with."""
    rng = np.random.default_rng(seed)
    rows = []
    for row in range(n_rows):
        team = int(rng.choice(3, p=[0.5, 0.3, 0.2]))
        spoken = TEAMS[(team + (rng.random() < 0.25) * rng.integers(1, 3) + shift) % 3]
        words = [*rng.choice(WORDS[spoken].split(), 3), *rng.choice(FILLERS.split(), 4)]
        hour = int(rng.normal((9, 13, 20)[team], 3)) % 24
        day, minute = int(rng.integers(0, 300)), int(rng.integers(60))
        opened = datetime(2024, 1, 1) + timedelta(days=day, hours=hour, minutes=minute)
        product = str(rng.choice(["basic", "plus", "pro"], p=np.roll([0.6, 0.3, 0.1], team)))
        rows.append(
            {
                "ticket": f"T-{seed}-{row:06d}",
                "opened": None if rng.random() < 0.05 else opened.isoformat(sep=" "),
                "product": None if rng.random() < 0.05 else product,
                "age": None if rng.random() < 0.1 else round(float(rng.gamma(2 + team, 10)), 1),
                "calls": int(rng.poisson(1 + team)),
                "message": None if rng.random() < 0.05 else " ".join(rng.permutation(words)),
                "team": TEAMS[team],
            }
        )
    return pd.DataFrame(rows)


def write_tickets(folder: Path) -> None:
    make_tickets(20_000, seed=1).to_csv(folder / "train.csv", index=False)
    make_tickets(5_000, seed=2).to_csv(folder / "test.csv", index=False)


def write_months(folder: Path) -> None:
    """Seven months; from the third on, every team is written to with the words of another."""
    for month in range(1, 8):
        table = make_tickets(5_000, seed=month, shift=int(month > 3))[["message", "product", "age", "team"]]
        table.dropna().to_csv(folder / f"month-{month}.csv", index=False)


STREAM = [
    f"priory learn desk.priory month-{month}.csv && priory forget desk.priory month-{month - 3}.csv"
    for month in (4, 5, 6)
]
JOBS = {
    "mail": Job(
        "Folders of mail",
        write_mail,
        ("priory train train --format mail -o mail.priory", "priory evaluate mail.priory test --format mail"),
    ),
    "costs": Job(
        "A table with costs",
        write_census,
        (
            "priory train train.csv --target income -o income.priory",
            "priory evaluate income.priory test.csv --cost fn=5 --positive '>50K'",
        ),
    ),
    "news": Job(
        "News topics",
        write_news,
        (
            "priory train train --encoding latin-1 -o news.priory",
            "priory evaluate news.priory test --encoding latin-1",
        ),
    ),
    "mixed": Job(
        "Dates, identifiers, free text and gaps",
        write_tickets,
        ("priory train train.csv --target team -o desk.priory", "priory evaluate desk.priory test.csv"),
    ),
    "stream": Job(
        "A stream with forgetting",
        write_months,
        (
            "priory train month-1.csv month-2.csv month-3.csv --target team -o desk.priory",
            *STREAM,
            "priory evaluate desk.priory month-7.csv",
        ),
    ),
}


# -- running -----------------------------------------------------------------------------------------------------------


def run_shell(command: str, folder: Path) -> tuple[str, float, float]:
    """What a command prints, its seconds on the clock, and those of all cores."""
    before, start = os.times(), datetime.now()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where priory is installed
    done = subprocess.run(
        command, shell=True, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    after = os.times()
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr[-500:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, (datetime.now() - start).total_seconds(), cpu


def read_scores(printed: str) -> dict[str, float]:
    """The scores of ``priory evaluate --json``."""
    found = json.loads(printed)
    scores = {name: float(found["scores"][name]["value"]) for name in ("accuracy", "log_loss")}
    if found.get("costs"):
        scores["cost"] = float(found["costs"]["least_cost"]["value"])
    return scores


def run_commands(job: Job, folder: Path) -> Outcome:
    runs = [run_shell(command, folder) for command in (*job.commands[:-1], f"{job.commands[-1]} --json")]
    return Outcome(len(job.commands), sum(r[1] for r in runs), sum(r[2] for r in runs), read_scores(runs[-1][0]))


def run_script(name: str, folder: Path) -> Outcome:
    script = SCRIPTS / f"{name}.py"
    printed, wall, cpu = run_shell(f"{shlex.quote(sys.executable)} -W ignore {shlex.quote(str(script))} .", folder)
    lines = [line for line in script.read_text().splitlines() if line.strip() and not line.startswith(("#", '"""'))]
    return Outcome(len(lines), wall, cpu, json.loads(printed))


def format_row(title: str, who: str, outcome: Outcome) -> str:
    scores = " | ".join(f"{outcome.scores[name]:.4f}" if name in outcome.scores else "" for name in SCORES)
    return f"| {title} | {who} | {outcome.lines} | {outcome.wall:.1f} | {outcome.cpu:.1f} | {scores} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=JOBS, action="append")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = [
        "# Five jobs, from files to scores",
        "",
        f"`python benchmarks/jobs.py --write`, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {load()}.",
        "Lines to type; seconds of whole processes; scores on rows that neither has learned. `priory train` also "
        "scores the model by cross-validation and audits the table, which the scripts do not.",
        "",
        "| job | who | lines | seconds | seconds of all cores | accuracy | log loss | mean cost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in given.only or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            JOBS[name].prepare(Path(folder))
            lines.append(format_row(JOBS[name].title, "priory", run_commands(JOBS[name], Path(folder))))
            lines.append(format_row("", "scikit-learn", run_script(name, Path(folder))))
        print(*lines[-2:], sep="\n", file=sys.stderr)
    print("\n".join(lines))
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
