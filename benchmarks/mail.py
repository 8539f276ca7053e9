"""Spam: Priory's readings of mail beside bogofilter, within a collection, across collections, and online.

    python benchmarks/mail.py --write        # needs spamassassin, sms_spam, and bogofilter (Debian)

(1-ROCA)% is TREC's measure, 100 (1 - area under the ROC curve). "false positives" are ham with p >= 0.9.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

import datasets
import priory as pr
from priory.text.mail import read_mail

RESULTS = Path(__file__).parent / "results" / "mail.md"
ARCHIVE = "spamassassin/spamassassin-publiccorpus.tar.gz"


class Message(NamedTuple):
    folder: str
    name: str
    raw: bytes

    @property
    def is_spam(self) -> bool:
        return "spam" in self.folder

    @property
    def label(self) -> str:
        return "spam" if self.is_spam else "ham"


Split = tuple[list[Message], list[Message]]


def load_spamassassin() -> list[Message]:
    """The messages in the order of their folders and numbers, which is that of time within a folder."""
    with tarfile.open(datasets.DATA / ARCHIVE) as archive:
        files = [(Path(member.name).parts, archive.extractfile(member)) for member in archive if member.isfile()]
        return sorted(Message(parts[1], parts[2], file.read()) for parts, file in files if file and len(parts) == 3)


def load_sms() -> list[Message]:
    texts, labels, *_ = datasets.text("sms_spam")
    return [
        Message(label, str(i), b"\n" + text.encode()) for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]


def split_shuffled(messages: list[Message], share: float = 0.6) -> Split:
    mixed = messages.copy()
    random.Random(0).shuffle(mixed)
    n = int(share * len(mixed))
    return mixed[:n], mixed[n:]


def split_by_time(messages: list[Message], share: float = 0.6) -> Split:
    """The first messages of each folder, and the last."""
    first, last = [], []
    for folder in sorted({m.folder for m in messages}):
        own = [m for m in messages if m.folder == folder]
        n = int(share * len(own))
        first, last = first + own[:n], last + own[n:]
    return first, last


def run_bogofilter(train: Sequence[Message], test: Sequence[Message]) -> np.ndarray:
    """The spamicity of each message of the test, (messages,)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def write(messages: Sequence[Message], prefix: str) -> bytes:
            paths = [folder / f"{prefix}{i}" for i in range(len(messages))]
            for path, message in zip(paths, messages, strict=True):
                path.write_bytes(message.raw)
            return "\n".join(map(str, paths)).encode() + b"\n"

        command = ["bogofilter", "-C", "-d", name]
        for flag, is_spam in (("-n", False), ("-s", True)):
            listed = write([m for m in train if m.is_spam == is_spam], flag.strip("-"))
            subprocess.run([*command, flag, "-b"], input=listed, check=True)
        out = subprocess.run([*command, "-T", "-b"], input=write(test, "t"), capture_output=True).stdout
        return np.array([float(line.split()[-1]) for line in out.decode().splitlines()])


def run_priory(reader: str, **options: object) -> Callable[[Sequence[Message], Sequence[Message]], np.ndarray]:
    def run(train: Sequence[Message], test: Sequence[Message]) -> np.ndarray:
        model = pr.TextClassifier(reader=reader, **options)
        model.fit([read_mail(m.raw, reader).text for m in train], [m.label for m in train])
        return model.predict_proba([read_mail(m.raw, reader).text for m in test])[:, 1]

    return run


def score(p: np.ndarray, truth: np.ndarray) -> str:
    safe = np.clip(p, 1e-15, 1 - 1e-15)
    loss = -np.where(truth, np.log(safe), np.log1p(-safe)).mean()
    area = roc_auc_score(truth, p)
    return (
        f"{((p > 0.5) == truth).mean():.2%} | {100 * (1 - area):.4f} | {loss:.4f} | "
        f"{((p >= 0.9) & ~truth).sum()} of {(~truth).sum():,}"
    )


FILTERS = {
    "bogofilter": run_bogofilter,
    "plain text (subject, addresses, visible text)": run_priory("text"),
    '`reader="mail_body"`': run_priory("mail_body"),
    '`reader="mail"`': run_priory("mail"),
}


def score_online(messages: list[Message], every: int) -> list[str]:
    """Each message is predicted, then learned; bogofilter learns it after each answer too."""
    mixed = messages.copy()
    random.Random(1).shuffle(mixed)
    mixed = mixed[:every]
    truth = np.array([m.is_spam for m in mixed])
    ours = {reader: _predict_online(mixed, reader) for reader in ("text", "mail")}
    theirs = _predict_online_by_bogofilter(mixed)
    rows = {"bogofilter": theirs, "plain text": ours["text"], '`reader="mail"`': ours["mail"]}
    return [
        f"| {name} | {part} | {score(p[start:], truth[start:])} |"
        for name, p in rows.items()
        for part, start in (("from message 1", 0), ("from message 100", 100), ("second half", len(mixed) // 2))
    ]


def _predict_online(messages: list[Message], reader: str) -> np.ndarray:
    model, found = pr.TextClassifier(reader=reader), []
    for message in messages:
        text = read_mail(message.raw, reader).text
        known = len(getattr(model, "classes_", ())) == 2
        found.append(model.predict_proba_one(text)["spam"] if known else 0.5)
        model.learn_one(text, message.label)
    return np.array(found)


def _predict_online_by_bogofilter(messages: list[Message]) -> np.ndarray:
    found = []
    with tempfile.TemporaryDirectory() as name:
        command = ["bogofilter", "-C", "-d", name]
        subprocess.run([*command, "-n"], input=b"", check=False)
        for message in messages:
            out = subprocess.run([*command, "-T"], input=message.raw, capture_output=True).stdout
            found.append(float(out.split()[-1]) if out.split() else 0.5)
            subprocess.run([*command, "-s" if message.is_spam else "-n"], input=message.raw, check=True)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--online", type=int, default=3000, help="messages of the online protocol")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    mail, sms = load_spamassassin(), load_sms()
    early = [m for m in mail if m.folder in ("easy_ham", "spam")]
    late = [m for m in mail if m.folder not in ("easy_ham", "spam")]
    splits = {
        "SpamAssassin, 60 % at random": split_shuffled(mail),
        "SpamAssassin, first 60 % of each folder": split_by_time(mail),
        "SMS, 60 % at random": split_shuffled(sms),
        "across: easy_ham, spam -> easy_ham_2, hard_ham, spam_2": (early, late),
        "across: easy_ham_2, hard_ham, spam_2 -> easy_ham, spam": (late, early),
        "across: SpamAssassin -> SMS": (mail, sms),
        "across: SMS -> SpamAssassin": (sms, mail),
    }
    lines = ["# Spam", "", f"`python benchmarks/mail.py --online {given.online} --write`; {os.cpu_count()} cores.", ""]
    lines += ["| split | reading | accuracy | (1-ROCA)% | log loss | false positives |", "|---|---|--:|--:|--:|--:|"]
    for name, (train, test) in splits.items():
        truth = np.array([m.is_spam for m in test])
        for reading, run in FILTERS.items():
            lines.append(f"| {name} | {reading} | {score(run(train, test), truth)} |")
            print(lines[-1], flush=True)
    lines += ["", "Online: predict, then learn, in random order.", ""]
    lines += ["| filter | messages | accuracy | (1-ROCA)% | log loss | false positives |", "|---|---|--:|--:|--:|--:|"]
    lines += score_online(mail, given.online)
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
