"""The pages of the course as slides, made from the pages of the built site: a slide for each section."""

import re
from pathlib import Path

from course_pages import PAGES

SLIDES = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
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
SKIPPED = {"exercises", "references"}
PART = re.compile(
    r'(?=<p>|<div class="highlight|<div class="formula">|<table|<ul|<img|<a class="reference internal image)'
)


def write_slides(site: Path) -> None:
    """Write slides.html beside each page of the course in the built site."""
    for page in PAGES:
        text = (site / "course" / f"{page.stem}.html").read_text(encoding="utf-8")
        slides = SLIDES.format(title=read_title(text), slides="\n".join(make_slides(text)))
        (site / "course" / f"{page.stem}-slides.html").write_text(slides, encoding="utf-8")


def link_slides(text: str) -> str:
    """A page with links to the slides of all pages in the place that is marked for them."""
    titles = {page.stem: page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in PAGES}
    links = "\n".join(f'<li><a href="{name}-slides.html">{title}</a></li>' for name, title in titles.items())
    return text.replace("<!-- slides -->", f"<ul>\n{links}\n</ul>")


def link_own_slides(text: str, name: str) -> str:
    """A page with a link to its slides below the title."""
    title, rest = text.split("\n", 1)
    return f'{title}\n\n<p class="slides-link"><a href="{name}-slides.html">Slides of this page</a></p>\n{rest}'


def read_title(text: str) -> str:
    return re.sub(r"<a class=\"headerlink.*?</a>|<[^>]+>", "", re.search(r"<h1>(.*?)</h1>", text, re.DOTALL)[1])


def make_slides(text: str) -> list[str]:
    """A slide with the title and the problem, and a column of slides for each section."""
    article = text[text.index("<h1>") : text.index("</article>")]
    article = re.sub(r'<a class="headerlink.*?</a>', "", article)
    article = re.sub(r'<p class="slides-link">.*?</p>', "", article)
    article = re.sub(r"<details>.*?</details>|</?section[^>]*>", "", article, flags=re.DOTALL)
    parts = re.split(r"(?=<h[12]>)", article)
    return [make_slide(part) for part in parts if part.strip() and not is_skipped(part)]


def is_skipped(part: str) -> bool:
    heading = re.match(r"<h[12]>(.*?)</h[12]>", part)
    return bool(heading) and heading[1].lower() in SKIPPED


def make_slide(part: str) -> str:
    """A section as slides below one another, of about as much text as fits."""
    heading, _, body = part.partition("</h1>" if part.startswith("<h1>") else "</h2>")
    pages, size = [""], 0
    for piece in PART.split(body):
        weight = 14 if "<img" in piece else 3 + piece.count("\n") + len(re.sub(r"<[^>]+>", "", piece)) // 90
        if size and size + weight > 22:
            pages.append("")
            size = 0
        pages[-1] += piece
        size += weight
    close = "</h1>" if part.startswith("<h1>") else "</h2>"
    inner = "\n".join(f"<section>{heading}{close}{page}</section>" for page in pages)
    return f"<section>{inner}</section>"
