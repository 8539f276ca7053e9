"""The course: exercises that check themselves, and pages, figures and notebooks that agree with one another."""

import doctest
import json
import re
import subprocess
import sys

import pytest

import check_course
import course_pages
import make_course
from course_pages import PAGES, run_page, split_page
from paths import ROOT
from priory.bayes.course import check, format_answer, list_exercises
from priory.errors import DataError
from worked_examples import WORKED_EXAMPLES

EXERCISES = {exercise.name: exercise for exercise in list_exercises()}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
exercises = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.mark.parametrize("tool", [check_course, course_pages, make_course], ids=lambda tool: tool.__name__)
def test_the_examples_of_the_tools_run(tool):
    failed, attempted = doctest.testmod(tool)
    assert failed == 0
    assert attempted > 0


@exercises
def test_an_exercise_knows_its_answer_and_its_mistakes(exercise):
    assert repr(check(exercise.name, exercise.answer)) == "Right."
    assert check(exercise.name, format_answer(exercise.answer))
    assert exercise.mistakes
    for mistake in exercise.mistakes:
        verdict = check(exercise.name, mistake.answer)
        assert not verdict
        assert verdict.message == f"Not yet. {mistake.explanation}"


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("library-1", "2/25", "Right."),
        ("library-1", "8 %", "Right."),
        ("library-1", 8, "Not yet. The digits are right: give a share from 0 to 1, or write the percent sign."),
        ("library-1", 0.92, "Not yet. This is the probability of the opposite: 1 minus the answer."),
        ("library-1", 0.0869565, "Not yet. These are the odds: p / (1 - p) instead of p."),
        ("library-1", 0.5, "Not yet. Bayes' rule: P(course | library) = P(library | course) P(course) / P(library)."),
        ("library-1", ..., "Put your answer in place of the dots."),
        ("best-1", 0.45, "Not yet. The answer is 2 numbers, separated by commas."),
        ("library-1", "many", "Not yet. The answer is one number."),
        ("mle-map-1", 1, "Not yet. The answer is a word."),
        ("border-1", 2.01, "Not yet. Equal variances and equal priors: halfway."),  # whole numbers must be exact
    ],
)  # fmt: skip
def test_the_check_says_what_is_wrong(name, answer, message):
    assert repr(check(name, answer)) == message


def test_an_exercise_that_does_not_exist():
    with pytest.raises(DataError, match=r"there is no exercise 'librar-1' \(did you mean 'library-1'\?\)\."):
        check("librar-1", 1)


def test_lecturers_get_a_file_with_all_answers(tmp_path):
    file = tmp_path / "exercises.md"
    subprocess.run([sys.executable, "-m", "priory.bayes.course", str(file)], check=True)
    text = file.read_text(encoding="utf-8")
    assert all(f"### {name}\n" in text and exercise.solution in text for name, exercise in EXERCISES.items())


@pages
def test_a_page_has_its_exercises_and_solutions(page):
    assert page.read_text(encoding="utf-8") == make_course.write_exercises(page), "run tools/make_course.py"


def test_the_index_of_the_notes_is_up_to_date():
    index = ROOT / "docs" / "course" / "index.md"
    assert index.read_text(encoding="utf-8") == check_course.write_notes_index(), "run tools/make_course.py"


def test_every_heading_of_the_notes_has_a_section_a_figure_and_an_exercise(monkeypatch):
    assert list(check_course.find_missing()) == []
    notes = {**check_course.NOTES, "notes": [{"rows": [["Gone", "", "probability#gone", "gone", "gone-1"]]}]}
    monkeypatch.setattr(check_course, "NOTES", notes)
    assert len(list(check_course.find_missing())) == 3


def test_every_worked_example_is_listed():
    assert set(check_course.NOTES["worked"]) == set(WORKED_EXAMPLES)


@pytest.fixture(scope="module")
def runs():
    return {}


def run_once(runs, page):
    if page not in runs:
        runs[page] = make_course.write_files(page)
    return runs[page]


@pytest.mark.slow
@pages
def test_figures_in_the_repository_are_those_that_the_page_draws(runs, page):
    drawn = {path: text for path, text in run_once(runs, page).items() if path.suffix == ".svg"}
    for path, svg in drawn.items():
        stored = path.read_text(encoding="utf-8")
        for pattern in (r"<(\w+)", r">([^<>\n]+)</text>"):
            assert re.findall(pattern, stored) == re.findall(pattern, svg), f"{path.name}: run tools/make_course.py"
        assert [float(x) for x in list_numbers(stored)] == pytest.approx([float(x) for x in list_numbers(svg)], abs=0.5)


def list_numbers(svg):
    """The coordinates of the paths of a figure."""
    return NUMBER.findall(" ".join(re.findall(r'\bd="([^"]*)"', svg)))


def test_every_figure_is_on_a_page_light_and_dark_with_a_caption_and_its_call():
    named = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, caption in re.findall(r'src="../figures/course/([\w-]+)\.svg">\n</picture>\n\n\*(.*?)\*\n', text):
            assert "Drawn by `plots." in caption
            named[name] = caption
    stored = {path.stem for path in make_course.FIGURES.glob("*.svg")}
    assert stored == set(named) | {f"{name}-dark" for name in named}


@pytest.mark.slow
@pages
def test_a_notebook_has_every_result_and_figure_of_its_page(runs, page):
    stored = json.loads((ROOT / "notebooks" / f"{page.stem}.ipynb").read_text(encoding="utf-8"))
    made = json.loads(run_once(runs, page)[ROOT / "notebooks" / f"{page.stem}.ipynb"])
    assert [cell["source"] for cell in stored["cells"]] == [cell["source"] for cell in made["cells"]]
    shown = [read_output(cell) for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert shown == [read_output(cell) for cell in made["cells"] if cell["cell_type"] == "code"]
    wanted = [text for text in list_results(page) if text]
    assert [text for text in shown if text and not text.startswith(("<Figure>", "Put your answer"))] == wanted


def read_output(cell):
    """What a cell shows, as text; a figure is <Figure>."""
    parts = []
    for output in cell["outputs"]:
        text = output.get("text") or output.get("data", {}).get("text/plain") or output.get("traceback", [])
        parts.append("".join(text).rstrip())
    return "\n".join(part for part in parts if part)


def list_results(page):
    """The results on a page, up to its exercises."""
    for block in split_page(page.read_text(encoding="utf-8")):
        if block.kind == "code":
            for example in doctest.DocTestParser().get_examples(block.text):
                want = example.want.replace("<BLANKLINE>", "").rstrip("\n")
                yield (
                    (example.exc_msg or "").rstrip("\n") if example.exc_msg else re.sub(r"[ ]+$", "", want, flags=re.M)
                )


@pytest.mark.slow
@pages
def test_every_picture_in_a_notebook_is_its_file(page):
    notebook = json.loads((ROOT / "notebooks" / f"{page.stem}.ipynb").read_text(encoding="utf-8"))
    pictures = [
        "".join(output["data"]["image/svg+xml"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "image/svg+xml" in output.get("data", {})
    ]
    names = re.findall(r'src="../figures/course/([\w-]+)\.svg"', page.read_text(encoding="utf-8"))
    assert pictures == [(make_course.FIGURES / f"{name}.svg").read_text(encoding="utf-8") for name in names]


@pytest.mark.slow
@pages
def test_a_notebook_shows_the_same_when_it_is_run(page, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    text = (ROOT / "notebooks" / f"{page.stem}.ipynb").read_text(encoding="utf-8")
    stored, notebook = json.loads(text), nbformat.reads(text, 4)
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for before, after in zip(stored["cells"], notebook.cells, strict=True):
        if before["cell_type"] == "code":
            pictures = [output["data"] for output in after.outputs if "image/png" in output.get("data", {})]
            if read_output(before).startswith("<Figure>"):
                assert len(pictures) == 1
            elif not after.metadata.get("tags"):  # the traceback of an error has colours
                assert read_output(after) == read_output(before)


def test_solutions_fold_out_and_are_not_run_with_the_page():
    run = run_page(next(page for page in PAGES if page.stem == "probability"))
    solutions = [part for part in run.parts if getattr(part, "kind", "") == "solution"]
    assert len(solutions) == len(list_exercises("probability"))
