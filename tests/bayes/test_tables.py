"""A hypothesis space on the board: the numbers of the lecture, and what every learner answers."""

import pytest

import priory as pr
from worked_examples import WORKED_EXAMPLES

SHARES = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}


def candy_bags():
    prior = dict(zip(SHARES, (0.1, 0.2, 0.4, 0.2, 0.1), strict=True))
    return pr.Hypotheses(prior, {h: {"lime": p, "cherry": 1 - p} for h, p in SHARES.items()})


def test_the_candy_bags_after_three_limes():
    table = candy_bags().update_many(["lime"] * 3).table()
    frame = table.to_frame().set_index("h")
    expect = WORKED_EXAMPLES["candy_bags"]["expect"][3]["posterior"]
    assert frame["P(h|D)"].drop("sum").tolist() == pytest.approx([float(p) for p in expect], abs=1e-12)
    assert (frame["P(h)"] * frame["P(D|h)"]).drop("sum").tolist() == pytest.approx(
        frame["P(h) P(D|h)"].drop("sum").tolist()
    )
    assert table.title == "after 3 observations: P(D) = 0.2375"


def test_the_steps_are_those_of_the_lecture_and_learn_nothing():
    bags = candy_bags()
    frame = bags.steps(["lime"] * 10).to_frame().set_index("h")
    for n, expected in enumerate(WORKED_EXAMPLES["candy_bags"]["expect"]):
        assert frame.iloc[:, n].tolist() == pytest.approx([float(p) for p in expected["posterior"]], abs=1e-12)
    assert bags.seen.n == 0


def test_one_screen_with_every_answer():
    example = WORKED_EXAMPLES["bayes_optimal_vs_map"]
    label = {h: {"+": p, "-": 1 - p} for h, p in example["P(+|h)"].items()}
    frame = pr.Hypotheses(example["posterior"], label).answers().to_frame().set_index("learner")
    assert frame.loc["MAP: h1", "answer"] == "+"
    assert frame.loc["Bayes-optimal vote", ["P(+)", "P(-)"]].tolist() == pytest.approx([0.4, 0.6])
    assert frame.loc["Bayes-optimal vote", "answer"] == "-"
    assert frame.loc["Gibbs", "P(-)"] == pytest.approx(0.6)
    assert frame["P(wrong)"].tolist() == pytest.approx([0.4, 0.6, 0.4, 0.48])


def test_a_space_says_what_it_is():
    assert repr(candy_bags()) == "<Hypotheses: 5 hypotheses, 0 observations, MAP 'h3' with P(h|D) = 0.4>"
    assert repr(candy_bags().update("lime")).startswith("<Hypotheses: 5 hypotheses, 1 observation, MAP 'h3'")
    assert "style=" not in candy_bags()._repr_html_()


def test_a_large_space_is_cut_in_the_table():
    many = {f"h{i}": {"a": 1.0} for i in range(500)}
    assert str(pr.Hypotheses(None, many).table()).splitlines()[-2].startswith("and 440 more")
