"""What the documents say is true: their examples run, their links lead somewhere, the design is what `ls` shows."""

import doctest
import re
import runpy

import pytest

import build_docs
import priory
from house_figures import read_layers
from paths import ROOT
from priory import plots
from worked_examples import WORKED_EXAMPLES

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GALLERY = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))

# The page of the course that shows each worked example, and a result that has to stand there.
EXAMPLES_ON_PAGES = {
    "bayes_optimal_vs_map": ("hypotheses", "Bayes-optimal vote     0.4     0.6  -"),
    "gibbs_bound": ("hypotheses", "(0.4, 0.48)"),
    "gibbs_of_noisy_hypotheses": ("hypotheses", "0.2612"),
    "candy_bags": ("hypotheses", "h5    0.1      0.2   0.3077   0.4211"),
    "mdl_equals_map": ("hypotheses", "h4 3.567"),
    "play_tennis": ("naive-bayes", "P(class | row)       0.7954    0.2046"),
    "missing_feature": ("naive-bayes", "P(class | row)         0.8663   0.1337"),
    "go_to_library": ("naive-bayes", "P(class | row)       0.8505    0.1495"),
    "bayes_rule_course": ("probability", "0.08"),
    "log_sum_exp": ("probability", "-119.68673831248178"),
    "bag_of_words_dictionary": ("text", "[[1, 1, 0, 1, 0, 1, 1]]"),
    "binary_bag_of_words": ("text", "[0, 0, 1, 1, 1, 0, 1, 1]"),
    "book_and_movie_reviews": ("text", "P(class | row)      0.7143     0.2857"),
    "likes_dislikes_prior": ("text", "like      300  300/1000 = 0.3"),
    "bernoulli_ml": ("distributions", "0.7"),
    "gaussian_ml": ("distributions", "[1.56, 1.0067]"),
    "two_multinomial_estimators": ("distributions", "[0.5556, 0.3611, 0.0833]"),
    "poisson_ml": ("distributions", "[3.3333, 1.3333, 0.3333]"),
    "sigmoid_unit": ("sigmoid", "[1.3863, 1.2988]"),
    "m_estimate": ("distributions", "0.125"),
}


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "engines.md"], ids=lambda p: p.name)  # needs clusters
def test_examples_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("example", GALLERY, ids=lambda p: p.stem)
def test_every_block_of_the_gallery_draws_a_figure(example):
    from matplotlib.figure import Figure

    names = runpy.run_path(str(example))
    n_blocks = example.read_text().count("# %%") + 1
    assert sum(isinstance(value, Figure) for value in names.values()) == n_blocks


@pytest.mark.parametrize("name", WORKED_EXAMPLES)
def test_every_worked_example_is_on_a_page_of_the_course(name):
    page, result = EXAMPLES_ON_PAGES[name]
    assert result in (ROOT / "docs" / "course" / f"{page}.md").read_text()


def test_images_of_the_course_are_made_by_the_gallery():
    for page in PAGES:
        for stem, number in re.findall(r"sphx_glr_(\w+)_(\d{3})\.png", page.read_text()):
            example = ROOT / "docs" / "gallery" / f"{stem}.py"
            assert int(number) <= example.read_text().count("# %%") + 1, f"{page.name}: {stem} {number}"


def test_every_figure_is_in_the_gallery_or_in_the_guides():
    texts = [path.read_text() for path in [*GALLERY, *PAGES, *(ROOT / "docs" / "figures").glob("*.py")]]
    missing = [name for name in plots.__all__ if not any(f"plots.{name}(" in text for text in texts)]
    assert missing == []


def test_the_reference_has_every_public_name():
    listed = {name for module in build_docs.PUBLIC_MODULES for name in build_docs.list_public_names(module)}
    modules = {name.removeprefix("priory.") for name in build_docs.PUBLIC_MODULES}
    assert set(priory.__all__) <= listed | modules


def test_every_page_of_the_site_is_in_a_table_of_contents():
    listed = set()
    for index in (ROOT / "docs").rglob("index.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", index.read_text(), re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(index.parent / name).resolve() for name in names}
    pages = {page.with_suffix("") for page in (ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "index"}
    assert pages <= listed


def test_the_readme_opens_with_the_equation_and_two_commands():
    head = "\n".join((ROOT / "README.md").read_text().splitlines()[:12])
    assert "posterior = prior + statistics(data)" in head
    assert "make demo" in head
    assert "make test" in head


def test_the_readme_quotes_what_was_measured_of_single_rows():
    results = (ROOT / "benchmarks" / "results" / "one_row.md").read_text()
    single, batch = re.findall(r"\| Priory, corrected, 300,000 tokens known \| (.*) \|", results)
    (learn, _, predict, _), (_, answer, partial_fit, _) = single.split(" | "), batch.split(" | ")
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"one message is learned in {learn} microseconds and answered in {predict};" in readme
    assert f"the next answer takes {answer} ms, and `partial_fit` of one message takes {partial_fit} ms" in readme


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("[A-Z]*.md"))], ids=lambda p: p.name)
def test_links_lead_to_a_file(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_design_has_a_paragraph_for_each_folder_in_the_order_of_the_layers():
    page = (ROOT / "docs" / "design.md").read_text()
    assert re.findall(r"^\*\*`(\w+)/?`\*\*", page, re.MULTILINE) == read_layers()


def test_the_design_names_modules_that_exist():
    page = (ROOT / "docs" / "design.md").read_text()
    rooms = page[page.index("## The rooms") : page.index("## Choices")]
    source = ROOT / "src" / "priory"
    modules = {path.relative_to(source).with_suffix("").as_posix() for path in source.rglob("*")}
    known = modules | {name.rpartition("/")[2] for name in modules} | {"priory", *dir(priory.NaiveBayes)}
    named = {name.strip("/") for name in re.findall(r"`([a-z_/]+)`", rooms)}
    assert named - known == set()
