"""Walks the headings of the lecture notes and the worked examples: each has section, figure, exercise and test.

    python tools/check_course.py                              # docs/course/notes.toml against the course
    python tools/check_course.py --notes DIR --examples FILE  # and the notes themselves against docs/course/notes.toml

It prints what is missing, and exits with 1 if anything is.
"""

import argparse
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from course_pages import COURSE, PAGES, ROOT
from priory.bayes.course import list_exercises

NOTES = tomllib.loads((COURSE / "notes.toml").read_text(encoding="utf-8"))
INDEX_START, INDEX_END = "<!-- notes: written by tools/make_course.py from notes.toml -->\n", "<!-- end of notes -->"
NOT_CONTENT = {"Logistic", "Road map", "FYS-2021 Machine Learning", "Bayes Rule and Classification (Part 2)"}
MIN_EXERCISES = 6


def make_anchor(heading: str) -> str:
    """The anchor of a heading, as the site and the repository page make it.

    >>> make_anchor("Bayes' rule, and why")
    'bayes-rule-and-why'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def find_missing() -> Iterator[str]:
    """Sections, figures, exercises and tests that the list of the notes names and the course does not have."""
    pages = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
    sections = {(name, make_anchor(h)) for name, text in pages.items() for h in re.findall(r"^#+ (.*)", text, re.M)}
    figures = {found for text in pages.values() for found in re.findall(r"figures/course/([\w-]+)\.svg", text)}
    exercises = {exercise.name for exercise in list_exercises()}
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for notes in NOTES["notes"]:
        for heading, _, place, figure, exercise in notes["rows"]:
            page, _, anchor = place.partition("#")
            if (page, anchor) not in sections:
                yield f"{heading}: no section {place}"
            yield from (f"{heading}: no figure {figure}" for _ in range(figure not in figures))
            yield from (f"{heading}: no exercise {exercise}" for _ in range(exercise not in exercises))
    for name, (page, result, figure, exercise, test) in NOTES["worked"].items():
        found = result in pages[page], figure in figures, exercise in exercises, f"def {test}(" in tests
        kinds = (f"{result!r} on the page {page}", f"figure {figure}", f"exercise {exercise}", f"test {test}")
        yield from (f"{name}: no {kind}" for kind, is_there in zip(kinds, found, strict=True) if not is_there)
    for name in pages:
        count = len(list_exercises(name))
        if count < MIN_EXERCISES:
            yield f"{name}: {count} exercises, of {MIN_EXERCISES}"


def find_unlisted(folder: Path) -> Iterator[str]:
    """Headings of the notes that the list does not have, and listed ones that the notes do not have."""
    for notes in NOTES["notes"]:
        text = next(folder.glob(f"{notes['file']}_*.txt")).read_text(encoding="utf-8")
        lines = {clean_heading(line) for line in text.splitlines()}
        marked = {clean_heading(line) for line in text.splitlines() if line.startswith("#")} - NOT_CONTENT
        listed = {clean_heading(row[0]) for row in notes["rows"]}
        title = {notes["title"], ""}
        yield from (f"{notes['file']}: {heading!r} is not listed" for heading in sorted(marked - listed - title))
        yield from (f"{notes['file']}: {heading!r} is not in the notes" for heading in sorted(listed - lines))


def clean_heading(line: str) -> str:
    return re.sub(r"[*#]", "", line).strip()


def write_notes_index() -> str:
    """The index page of the course, with a table of the headings of each of the notes."""
    page = (COURSE / "index.md").read_text(encoding="utf-8")
    start, end = page.index(INDEX_START) + len(INDEX_START), page.index(INDEX_END)
    return page[:start] + "".join(map(format_notes, NOTES["notes"])) + "\n" + page[end:]


def format_notes(notes: dict) -> str:
    lines = [f"\n### {notes['title']}: {notes['course'].split(',')[0].split(' (')[0]}\n", f"{notes['course']}.\n"]
    lines += ["| heading | section | exercise |", "|---|---|---|"]
    for heading, slides, place, _, exercise in notes["rows"]:
        page, _, anchor = place.partition("#")
        name = heading.replace("\\_", "_").replace("**", "").replace("|", "\\mid ").removeprefix("• ")
        number = f" ({'slides' if '-' in slides else 'slide'} {slides})" if slides else ""
        section = f"[{read_heading(page, anchor)}]({page}.md#{anchor})"
        home = next(one.page for one in list_exercises() if one.name == exercise)
        lines.append(f"| {name}{number} | {section} | [{exercise}]({home}.md#exercises) |")
    return "\n".join(lines) + "\n"


def read_heading(page: str, anchor: str) -> str:
    headings = re.findall(r"^#+ (.*)", (COURSE / f"{page}.md").read_text(encoding="utf-8"), re.M)
    return next(heading for heading in headings if make_anchor(heading) == anchor)


def format_coverage(page: str) -> str:
    """The notes that a page covers, in one sentence."""
    parts = []
    for notes in NOTES["notes"]:
        rows = [row for row in notes["rows"] if row[2].partition("#")[0] == page]
        slides = [row[1] for row in rows if row[1]]
        headings = [clean_heading(row[0]) for row in rows]
        if rows:
            source = notes["course"].split(",")[0].split(" (")[0]
            what = f"slides {', '.join(slides)}" if slides else f"{len(rows)} of its headings, from “{headings[0]}” on"
            parts.append(f"*{notes['title']}* ({source}), {what.replace('• ', '')}")
    return f"This page covers {'; '.join(parts)}." if parts else "This page is not in the notes."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=Path, help="the folder with the texts of the notes")
    parser.add_argument("--examples", type=Path, help="the worked examples of the notes, as JSON")
    given = parser.parse_args()
    missing = list(find_missing())
    if given.notes:
        missing += find_unlisted(given.notes)
    if given.examples:
        names = json.loads(given.examples.read_text(encoding="utf-8"))
        missing += [f"{name}: a worked example that is not listed" for name in names if name not in NOTES["worked"]]
    print("\n".join(missing) or "0 missing")
    n_headings = sum(len(notes["rows"]) for notes in NOTES["notes"])
    print(f"{n_headings} headings, {len(NOTES['worked'])} worked examples, {len(list_exercises())} exercises")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
