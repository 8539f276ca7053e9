"""The pages of the course as slides, made from the pages of the built site: a slide for each section."""

from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from course_pages import PAGES

SLIDES = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
<link rel="icon" href="../_static/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="../_static/reveal/reset.css">
<link rel="stylesheet" href="../_static/reveal/reveal.css">
<link rel="stylesheet" href="../_static/katex/katex.min.css">
<link rel="stylesheet" href="../_static/pygments.css">
<link rel="stylesheet" href="../_static/slides.css">
</head>
<body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script src="../_static/katex/katex.min.js"></script>
<script src="../_static/math.js"></script>
<script src="../_static/reveal/reveal.js"></script>
<script src="../_static/slides.js"></script>
</body>
</html>
"""
SKIPPED = {"Exercises", "References"}
FITTING_LINES = 22  # of text on a slide
PICTURE_LINES, LINE_LENGTH = 16, 95


def write_slides(site: Path) -> None:
    """Write slides.html beside each page of the course in the built site."""
    for page in PAGES:
        built = BeautifulSoup((site / "course" / f"{page.stem}.html").read_text(encoding="utf-8"), "html.parser")
        title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        slides = SLIDES.format(title=title, slides="\n".join(make_slides(built)))
        (site / "course" / f"{page.stem}-slides.html").write_text(slides, encoding="utf-8")


def make_slides(page: BeautifulSoup) -> Iterator[str]:
    """A slide with the title and the problem, and a column of slides for each section."""
    article = page.select_one("article section")
    for extra in article.select("a.headerlink, details, .slides-link"):
        extra.decompose()
    for wrapper in article.select("div.play"):
        wrapper.unwrap()
    sections = [article, *article.find_all("section", recursive=False)]
    for section in sections:
        heading, *parts = [part for part in section.find_all(recursive=False) if part.name != "section"]
        if heading.get_text() not in SKIPPED:
            slides = (f"<section>{heading}{''.join(map(str, group))}</section>" for group in fill_slides(parts))
            yield f"<section>{''.join(slides)}</section>"


def fill_slides(parts: list[Tag]) -> list[list[Tag]]:
    """The parts of a section in groups that fit on a slide."""
    groups, used = [[]], 0
    for part in parts:
        lines = count_lines(part)
        if groups[-1] and used + lines > FITTING_LINES:
            groups.append([])
            used = 0
        groups[-1].append(part)
        used += lines
    return groups


def count_lines(part: Tag) -> int:
    """About how many lines of a slide a part takes."""
    if part.name == "img" or part.find("img"):
        return 0 if "only-dark" in str(part) else PICTURE_LINES
    if part.find("tr"):
        return 2 * len(part.find_all("tr"))
    text = part.get_text()
    if part.find("pre"):
        return 2 + 2 * text.count("\n") // 3  # of smaller letters
    if "formula" in part.get("class", []):
        return 4 + 2 * text.count(r"\\")
    return 1 + max(2 * len(part.find_all("li")), len(text) // LINE_LENGTH)
