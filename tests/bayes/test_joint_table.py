"""Joint tables: to marginalise is to add, to condition is to divide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.bayes import JointTable, are_independent, complement, conditional_probability, total_probability
from priory.errors import DataError

# Toothache, cavity and catch, of which the lecture has the first two.
DENTIST = JointTable(
    ["toothache", "cavity", "catch"],
    {
        ("yes", "yes", "yes"): 0.108,
        ("yes", "yes", "no"): 0.012,
        ("yes", "no", "yes"): 0.016,
        ("yes", "no", "no"): 0.064,
        ("no", "yes", "yes"): 0.072,
        ("no", "yes", "no"): 0.008,
        ("no", "no", "yes"): 0.144,
        ("no", "no", "no"): 0.576,
    },
)


def test_cavity_given_toothache():
    expected = conditional_probability(
        DENTIST.probability(cavity="yes", toothache="yes"), DENTIST.probability(toothache="yes")
    )
    assert DENTIST.condition(toothache="yes").probability(cavity="yes") == pytest.approx(expected) == pytest.approx(0.6)
    assert DENTIST.marginalise("cavity").p == pytest.approx({("yes",): 0.2, ("no",): 0.8})


def test_toothache_and_catch_are_independent_only_given_the_cavity():
    assert not DENTIST.are_independent("toothache", "catch")
    assert DENTIST.are_independent("toothache", "catch", given=["cavity"])
    assert DENTIST.are_independent("toothache", "catch", given="cavity")


@st.composite
def joint_tables(draw):
    weights = draw(st.lists(st.integers(1, 50), min_size=6, max_size=6))
    cells = [(a, b) for a in "xyz" for b in "uv"]
    return JointTable(["a", "b"], {c: w / sum(weights) for c, w in zip(cells, weights, strict=True)})


@given(joint_tables())
def test_total_probability_holds_in_every_table(table):
    causes = table.values("b")
    given_cause = [table.condition(b=b).probability(a="x") for b in causes]
    assert total_probability(given_cause, [table.probability(b=b) for b in causes]) == pytest.approx(
        table.probability(a="x")
    )
    assert complement(table.probability(a="x")) == pytest.approx(table.probability(a="y") + table.probability(a="z"))


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_a_product_of_marginals_is_independent(p, q):
    cells = {("a", "c"): p * q, ("a", "d"): p * (1 - q), ("b", "c"): (1 - p) * q, ("b", "d"): (1 - p) * (1 - q)}
    table = JointTable(["x", "y"], cells)
    assert table.are_independent("x", "y")
    assert are_independent(p, q, p * q)


def test_a_table_is_counted_from_rows():
    table = JointTable.from_rows(["wind", "play"], [("weak", "yes"), ("weak", "yes"), ("strong", "no"), ("weak", "no")])
    assert table.condition(wind="weak").probability(play="yes") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JointTable(["a"], {("x",): 0.5}), "the joint table sums to 0.5, not 1: give the probability of every"),
        (lambda: JointTable(["a"], {"x": 1.0}), "the cell 'x' does not have one value for each of"),
        (lambda: DENTIST.condition(cavity="maybe"), "P(cavity='maybe') = 0: cannot condition on an impossible event"),
        (lambda: DENTIST.probability(tooth="yes"), "no variable 'tooth'; the table has toothache, cavity, catch."),
        (lambda: conditional_probability(0.5, 0.2), "P(A∧B) = 0.5 is more than P(B) = 0.2"),
    ],
)
def test_what_contradicts_itself_is_refused(make, message):
    with pytest.raises(DataError) as error:
        make()
    assert str(error.value).startswith(message)
