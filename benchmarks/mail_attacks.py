"""Attacked spam: what `priory filter` answers to spam that was changed so that it looks like ordinary mail.

    python benchmarks/mail_attacks.py --write        # needs the data set spamassassin

A model of 60 % of the messages is asked about 60 spams of the others (10 in the last way), each changed in every way
below, and about all other messages as they are. Words are chosen by an attacker who knows the model: those with the
most evidence for ham.
"""

from __future__ import annotations

import argparse
import base64
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np

import priory as pr
from mail import Message, load_spamassassin, split_shuffled
from priory.model.ledger_output import convert_ledger_to_dict
from priory.service.mail_filter import FilterThresholds, Verdict, make_verdict
from priory.text.mail import read_mail

RESULTS = Path(__file__).parent / "results" / "mail_attacks.md"
N_SPAMS = 60
HOMOGLYPHS = str.maketrans("aeopcxi", "\u0430\u0435\u043e\u0440\u0441\u0445\u0456")
Attack = Callable[[Message, random.Random], bytes]


def compose(spam: Message, body: str, kind: str = "plain", extra: str = "") -> bytes:
    """The spam with another body, under its own headers."""
    head = spam.raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0].split(b"\n")
    kept, skipping = [], False
    for line in head:
        if not line.startswith((b" ", b"\t")):
            skipping = line.lower().startswith((b"content-", b"mime-version"))
        if not skipping:
            kept.append(line)
    kept.append(f"MIME-Version: 1.0\nContent-Type: text/{kind}; charset=utf-8{extra}".encode())
    return b"\n".join(kept) + b"\n\n" + body.encode("utf-8", "replace")


def read_body(spam: Message) -> str:
    return read_mail(spam.raw, "text").text.partition("\n\n")[2]


def add_words(n: int, good: list[str]) -> Attack:
    return lambda spam, rng: compose(spam, f"{read_body(spam)}\n{' '.join(rng.sample(good, n))}")


def make_attacks(good: list[str], hams: list[Message]) -> dict[str, Attack]:
    def ham(rng: random.Random) -> str:
        return read_mail(rng.choice(hams).raw, "text").text

    def encode(spam: Message) -> bytes:
        text = base64.encodebytes(read_body(spam).encode("utf-8", "replace")).decode()
        return compose(spam, text, extra="\nContent-Transfer-Encoding: base64")

    return {
        "as it came": lambda spam, _: spam.raw,
        "base64": lambda spam, _: encode(spam),
        "comments inside of words": lambda s, _: compose(s, read_body(s).replace("e", "<!-- x -->e"), "html"),
        "zero width": lambda spam, _: compose(spam, read_body(spam).replace("a", "\u200ba")),
        "homoglyphs": lambda spam, _: compose(spam, read_body(spam).translate(HOMOGLYPHS)),
        "image only": lambda spam, _: compose(spam, "<a href=http://go.example><img src=cid:1></a>", "html"),
        "50 good words": add_words(50, good),
        "200 good words": add_words(200, good),
        "a ham appended": lambda spam, rng: compose(spam, f"{read_body(spam)}\n{ham(rng)}"),
        "a ham hidden": lambda spam, rng: compose(
            spam, f"<p>{read_body(spam)}</p><div style='display:none'>{ham(rng)}</div>", "html"
        ),
        "200 good words hidden": lambda spam, rng: compose(
            spam, f"<p>{read_body(spam)}</p><p style='color:white'>{' '.join(rng.sample(good, 200))}</p>", "html"
        ),
        "1 MB of random words": lambda spam, rng: compose(
            spam, read_body(spam) + " ".join(f"{rng.getrandbits(40):x}" for _ in range(90_000))
        ),
    }


Answer = tuple[str, float, dict[str, object]]  # the likeliest class, its probability, and the ledger
THRESHOLDS = {
    "default": FilterThresholds(),
    "--max-unsure 0": FilterThresholds(max_unsure=0.0),
    "--max-false-positives spam=0.01": FilterThresholds.read(rates="spam=0.01"),
    "--max-false-positives spam=0.001": FilterThresholds.read(rates="spam=0.001"),
}


def ask(model: pr.TextClassifier, raws: list[bytes]) -> list[Answer]:
    return [
        (str(model.classes_[shares.argmax()]), float(shares.max()), dict(convert_ledger_to_dict(ledger)))
        for shares, ledger in zip(model.predict_proba(raws), model.explain(raws), strict=True)
    ]


def judge(answers: list[Answer], thresholds: FilterThresholds = THRESHOLDS["default"]) -> list[tuple[float, Verdict]]:
    """The probability of spam in the header, and the verdict on each message."""
    verdicts = [(label, make_verdict(label, p, explained, thresholds)) for label, p, explained in answers]
    return [(v.probability if label == "spam" else 1 - v.probability, v) for label, v in verdicts]


def tabulate_thresholds(answers: list[Answer], is_spam: np.ndarray) -> list[str]:
    """The error rates of options of `priory filter` on messages that were not learned."""
    lines = ["| options | ham called spam | spam called ham | ham unsure | spam unsure |", "|---|--:|--:|--:|--:|"]
    for name, thresholds in THRESHOLDS.items():
        labels = np.array([str(verdict.label) for _, verdict in judge(answers, thresholds)])
        rates = [
            np.mean(labels[is_spam == of_spam] == label)
            for of_spam, label in ((False, "spam"), (True, "ham"), (False, "None"), (True, "None"))
        ]
        lines.append(f"| `{name}` | " + " | ".join(f"{rate:.2%}" for rate in rates) + " |")
    return lines


def find_good_words(model: pr.TextClassifier, n: int = 500) -> list[str]:
    """The words with the most evidence for ham, weighed by how many messages have them."""
    return [e.token for e in model.evidence("ham", 4 * n) if e.token.isalpha()][:n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    train, test = split_shuffled(load_spamassassin())
    model = pr.TextClassifier(reader="mail").fit([m.raw for m in train], [m.label for m in train])
    answers = ask(model, [m.raw for m in test])
    ordinary, is_spam = judge(answers), np.array([m.is_spam for m in test])
    p = np.array([p for p, _ in ordinary])
    unsure = np.array([verdict.label is None for _, verdict in ordinary])
    wrong = np.array([(p > 0.5) != m.is_spam for (p, _), m in zip(ordinary, test, strict=True)])
    spams = [m for m, (p, _) in zip(test, ordinary, strict=True) if m.is_spam and p > 0.5 and read_body(m)][:N_SPAMS]
    attacks = make_attacks(find_good_words(model), [m for m in train if not m.is_spam])
    own = list(zip(answers, is_spam.tolist(), strict=True))
    lines = [
        "# Attacked spam",
        "",
        "`python benchmarks/mail_attacks.py --write`: SpamAssassin's public corpus, a model of 60 % of the messages;",
        f"{len(spams)} spams of the others, changed in each way. p is the probability of spam in the header.",
        "",
        f"Of {len(test):,} other messages as they came {unsure.mean():.1%} are unsure, "
        f"and {unsure[wrong].sum()} of the {wrong.sum()} that the model gets wrong.",
        "",
        f"Log loss of the header's p on ordinary mail: {-np.log(np.where(is_spam, p, 1 - p)).mean():.4f}; "
        f"of the model's own: {-np.log([p if (c == 'spam') == s else 1 - p for (c, p, _), s in own]).mean():.4f}.",
        "",
        "| attack | caught | unsure | caught or unsure | lowest p | median p |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, attack in attacks.items():
        rng, attacked = random.Random(name), spams[:10] if name.startswith("1 MB") else spams
        found = judge(ask(model, [attack(spam, rng) for spam in attacked]))
        p = np.array([p for p, _ in found])
        doubted = np.array([verdict.label is None for _, verdict in found])
        caught = np.array([verdict.label == "spam" for _, verdict in found])
        lines.append(
            f"| {name} | {caught.mean():.0%} | {doubted.mean():.0%} | {(caught | doubted).mean():.0%} | "
            f"{p.min():.3f} | {np.median(p):.3f} |"
        )
    lines += ["", "Options of `priory filter`, on the ordinary messages:", "", *tabulate_thresholds(answers, is_spam)]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
