"""What tests of the command line share: a few messages, and functions that write and read files of rows."""

import csv
import sys

PRIORY = [sys.executable, "-m", "priory"]
TEXTS = [
    ("ham", "lunch at noon then, my friend?"),
    ("spam", "win cash now, claim your prize"),
    ("ham", "see you at the station tomorrow"),
    ("spam", "your cash prize is waiting, claim now"),
    ("ham", "are we still on for lunch tomorrow?"),
    ("spam", "claim the prize now, free cash"),
]
GOOD = "label,text\n" + "".join(f'{label},"{text}"\n' for label, text in TEXTS)


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
