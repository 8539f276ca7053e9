"""The exercises of the course: their questions and answers, and a check that names the mistake behind a wrong answer.

>>> check("library-1", 0.08)
Right.
>>> check("library-1", 0.8)
Not yet. 0.8 is P(library | course), the other way round: the question asks for P(course | library).

``python -m priory.bayes.course exercises.md`` writes all of them with answers and solutions into a file, for lecturers.
"""

from __future__ import annotations

import csv
import math
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from priory.errors import DataError, suggest_name

RELATIVE_TOLERANCE = 0.005  # three digits are enough; whole numbers must be exact

ExerciseAnswer = float | str | tuple[float, ...]


@dataclass(frozen=True)
class Mistake:
    """An answer that a known mistake leads to, and what to say about it."""

    answer: ExerciseAnswer
    explanation: str


@dataclass(frozen=True)
class Exercise:
    """A question of the course, its answer, and how it is solved; ``code`` leaves the answer in ``answer``."""

    name: str
    page: str
    question: str
    answer: ExerciseAnswer
    hint: str
    solution: str
    code: str
    mistakes: tuple[Mistake, ...]


@dataclass(frozen=True)
class AnswerCheck:
    """Whether an answer is right, and what to do about it if it is not."""

    is_right: bool
    message: str

    def __bool__(self) -> bool:
        return self.is_right

    def __repr__(self) -> str:
        return self.message


def check(name: str, answer: object) -> AnswerCheck:
    """Check an answer to an exercise.

    Parameters
    ----------
    name : str
        The name of the exercise, such as ``"library-1"``.
    answer : number, text or sequence of numbers
        A number may also be written as ``"2/25"`` or ``"8%"``. Three digits are enough.

    Returns
    -------
    AnswerCheck
        True if the answer is right; its text says so, or which mistake the answer looks like.
    """
    exercises = _read_exercises()
    if name not in exercises:
        raise DataError(f"there is no exercise {name!r}{suggest_name(name, list(exercises))}.")
    exercise = exercises[name]
    if answer is ...:
        return AnswerCheck(False, "Put your answer in place of the dots.")
    given = read_answer(answer)
    if _agrees(given, exercise.answer):
        return AnswerCheck(True, "Right.")
    for mistake in (*exercise.mistakes, *_list_common_mistakes(exercise.answer)):
        if _agrees(given, mistake.answer):
            return AnswerCheck(False, f"Not yet. {mistake.explanation}")
    return AnswerCheck(False, f"Not yet. {_compare_forms(given, exercise.answer) or exercise.hint}")


def list_exercises(page: str | None = None) -> list[Exercise]:
    """Return the exercises of a page of the course, or all of them.

    >>> len(list_exercises("probability")) >= 6
    True
    """
    return [exercise for exercise in _read_exercises().values() if page in (None, exercise.page)]


def format_exercises(exercises: Iterable[Exercise]) -> str:
    """Return exercises with answers, known mistakes and solutions as Markdown, for lecturers."""
    parts = ["# Exercises with answers"]
    page = ""
    for exercise in exercises:
        if exercise.page != page:
            page = exercise.page
            parts.append(f"## {page}")
        parts += [f"### {exercise.name}", exercise.question, f"**Answer:** {format_answer(exercise.answer)}"]
        parts += [f"- {format_answer(one.answer)}: {one.explanation}" for one in exercise.mistakes]
        parts += [exercise.solution, f"```python\n{exercise.code}\n```"]
    return "\n\n".join(parts) + "\n"


def read_answer(answer: object) -> ExerciseAnswer:
    """Return an answer as a number, a text, or several numbers.

    >>> read_answer("2/25"), read_answer(" 8 %"), read_answer("0.4, 0.6"), read_answer(" H3 ")
    (0.08, 0.08, (0.4, 0.6), 'h3')
    """
    if isinstance(answer, str):
        numbers = [_read_number(part) for part in answer.strip("()[] ").split(",")]
        known = tuple(number for number in numbers if number is not None)
        if len(known) != len(numbers):
            return " ".join(answer.casefold().split())
        return known if len(known) > 1 else known[0]
    try:
        values = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"the answer {answer!r} is of no known kind: give a number, a text or several numbers."
        ) from None
    return tuple(values.ravel().tolist()) if values.ndim else float(values)


def format_answer(answer: ExerciseAnswer) -> str:
    """Return an answer as it would be typed.

    >>> format_answer((0.4, 1 / 3)), format_answer("h3")
    ('0.4, 0.3333', 'h3')
    """
    if isinstance(answer, str):
        return answer
    return ", ".join(f"{part:.4g}" for part in (answer if isinstance(answer, tuple) else (answer,)))


def _read_number(text: str) -> float | None:
    number, percent = text.replace(" ", "").removesuffix("%"), text.rstrip().endswith("%")
    try:
        value = float(Fraction(number)) if "/" in number else float(number)
    except (ValueError, ZeroDivisionError):
        return None
    return value / 100 if percent else value


def _agrees(given: ExerciseAnswer, wanted: ExerciseAnswer) -> bool:
    if isinstance(given, str) or isinstance(wanted, str):
        return given == wanted
    first, second = (one if isinstance(one, tuple) else (one,) for one in (given, wanted))
    return len(first) == len(second) and all(map(_is_close, first, second))


def _is_close(given: float, wanted: float) -> bool:
    tolerance = 1e-9 if wanted.is_integer() else RELATIVE_TOLERANCE * abs(wanted)
    return abs(given - wanted) <= tolerance


def _list_common_mistakes(answer: ExerciseAnswer) -> list[Mistake]:
    """Common mistakes with probabilities."""
    if not isinstance(answer, float) or not 0 < answer < 1:
        return []
    return [
        Mistake(100 * answer, "The digits are right: give a share from 0 to 1, or write the percent sign."),
        Mistake(1 - answer, "This is the probability of the opposite: 1 minus the answer."),
        Mistake(math.log(answer), "This is the logarithm of the answer."),
        Mistake(answer / (1 - answer), "These are the odds: p / (1 - p) instead of p."),
    ]


def _compare_forms(given: ExerciseAnswer, wanted: ExerciseAnswer) -> str:
    """Which kind of answer the exercise asks for, if another kind was given."""
    if isinstance(wanted, tuple):
        is_same = isinstance(given, tuple) and len(given) == len(wanted)
        return "" if is_same else f"The answer is {len(wanted)} numbers, separated by commas."
    if type(given) is type(wanted):
        return ""
    return "The answer is a word." if isinstance(wanted, str) else "The answer is one number."


@cache
def _read_exercises() -> dict[str, Exercise]:
    text = files("priory").joinpath("bayes", "exercises.toml").read_text("utf-8")
    return {name: _build_exercise(name, fields) for name, fields in tomllib.loads(text).items()}


def _build_exercise(name: str, fields: dict[str, Any]) -> Exercise:
    mistakes = tuple(Mistake(read_answer(answer), says) for answer, says in fields["mistakes"])
    texts = {key: fields[key].strip() for key in ("question", "hint", "solution", "code")}
    return Exercise(name, fields["page"], answer=read_answer(fields["answer"]), mistakes=mistakes, **texts)


def inbox() -> tuple[list[dict[str, Any]], list[str]]:
    """About 300 short messages (sender, hour, number of links, text) and their labels: spam, urgent or normal.

    >>> rows, labels = inbox()
    >>> len(rows) == len(labels), sorted(set(labels)), list(rows[0])
    (True, ['normal', 'spam', 'urgent'], ['sender', 'hour', 'links', 'text'])
    """
    lines = list(csv.DictReader(files("priory").joinpath("bayes", "inbox.csv").read_text("utf-8").splitlines()))
    labels = [line.pop("label") for line in lines]
    numbers = ({"hour": int(line["hour"]) if line["hour"] else None, "links": int(line["links"])} for line in lines)
    return [{**line, **number} for line, number in zip(lines, numbers, strict=True)], labels


if __name__ == "__main__":
    written = format_exercises(list_exercises())
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(written, encoding="utf-8")
    else:
        print(written, end="")
