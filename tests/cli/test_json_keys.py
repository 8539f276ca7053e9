"""The keys of JSON are those that docs/command-line.md names."""

import json
import re

import pytest

from paths import ROOT
from shell import write

SECTION = (ROOT / "docs" / "command-line.md").read_text().partition("## JSON\n")[2].partition("\n## ")[0]
KEYS = {
    name: row
    for names, row in re.findall(r"^\| (`.*?) \| (.*) \|$", SECTION, re.MULTILINE)
    for name in re.findall("`(.*?)`", names)
}


def list_named(text):
    return set(re.findall("`(.*?)`", text))


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("train", "inbox.csv --target label --plain --force"),
        ("train", "prices.csv --target price --plain"),
        ("evaluate", "inbox.priory inbox.csv"),
        ("explain", "inbox.priory links=4"),
        ("explain", "inbox.priory --from inbox.csv --overall"),
        ("explain", "inbox.priory --from inbox.csv --what-if"),
        ("audit", "inbox.csv --target label"),
        ("merge", "inbox.priory inbox.priory -o both.priory"),
        ("inspect", "inbox.priory"),
        ("forget", "inbox.priory inbox.csv"),
        ("doctor", ""),
    ],
)
def test_every_key_is_documented(table, run, command, arguments):
    write("prices.csv", ["n", "price"], [[i % 7, i * 3] for i in range(60)])
    out = run(command, *arguments.split(), "--json")[1]
    answer = json.loads(out)
    found = set(answer[0] if isinstance(answer, list) else answer)
    assert found
    assert found <= list_named(KEYS[command])
    scores = answer.get("scores") if isinstance(answer, dict) else None
    if scores:
        assert set(scores) <= list_named(SECTION)
