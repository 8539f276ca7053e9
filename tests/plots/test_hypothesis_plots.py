"""The figures of hypothesis spaces show the numbers of the spaces, and can be drawn without a display."""

import io
import sys

import numpy as np
import pytest

from paths import ROOT
from priory.bayes.continuum import Continuum
from priory.bayes.finite import Hypotheses
from priory.errors import DataError, PrioryError
from priory.families.bernoulli import Bernoulli

pytest.importorskip("matplotlib")
from priory import plots

SHARE = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}
LIMES = ["lime"] * 10


def bags():
    prior = dict(zip(SHARE, [0.1, 0.2, 0.4, 0.2, 0.1], strict=True))
    return Hypotheses(prior, {h: {"lime": p, "cherry": 1 - p} for h, p in SHARE.items()})


def drawn(figure):
    """The lines of a figure that renders."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")
    return figure.axes[0].get_lines()


def test_posterior_of_each_bag_against_the_number_of_limes():
    space = bags().update("cherry")  # what the space has seen does not matter: the figure starts afresh
    lines = drawn(plots.posterior_curves(space, LIMES))
    assert [line.get_ydata()[3] for line in lines] == pytest.approx(
        [0, 0.013157894736842105, 0.21052631578947367, 0.35526315789473684, 0.42105263157894735]
    )
    assert space.seen.n == 1


def test_probability_of_the_next_lime():
    (line,) = drawn(plots.next_outcome_curve(bags(), LIMES, "lime"))
    assert line.get_ydata()[[0, 1, 3, 10]] == pytest.approx([0.5, 0.65, 0.7960526315789473, 0.9730314698335799])
    (line,) = drawn(plots.next_outcome_curve(Continuum(("lime", "cherry")), LIMES, "lime"))
    assert line.get_ydata() == pytest.approx([(n + 1) / (n + 2) for n in range(11)])  # Laplace's rule of succession


def test_beta_posterior_with_its_marks():
    bag = Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)
    prior, likelihood, posterior, ml, maximum, mean = drawn(plots.belief(bag))
    assert np.allclose(prior.get_ydata(), 1)
    assert np.allclose(likelihood.get_ydata(), posterior.get_ydata())  # under a uniform prior
    assert np.trapezoid(posterior.get_ydata(), posterior.get_xdata()) == pytest.approx(1, abs=1e-3)
    assert [line.get_xdata()[0] for line in (ml, maximum, mean)] == pytest.approx([0.7, 0.7, 2 / 3])
    flat = plots.belief(Continuum())  # before anything was seen there is no ML and no MAP
    assert [text.get_text() for text in flat.axes[0].get_legend().get_texts()] == [
        "prior", "posterior", "mean 0.500", "no single MAP"
    ]  # fmt: skip
    ends = plots.belief(Continuum(prior=Bernoulli(0.5, 2)))
    assert "MAP 0.000" in [text.get_text() for text in ends.axes[0].get_legend().get_texts()]


def test_belief_about_a_share_against_the_number_of_observations():
    mean, mode = drawn(plots.belief_curve(Continuum(("lime", "cherry")), LIMES))
    assert mean.get_ydata()[-1] == pytest.approx(11 / 12)
    assert mode.get_ydata()[-1] == 1.0


@pytest.mark.slow
def test_version_space_shows_the_vote():
    concepts = {
        (low, high): lambda example, low=low, high=high: float((low <= example[0] <= high) == (example[1] == "+"))
        for low in range(10)
        for high in range(low, 10)
    }
    examples = [(3, "+"), (5, "+"), (8, "-")]
    space = Hypotheses(likelihood=concepts, outcomes=["+", "-"]).update_many(examples)
    figure = plots.version_space(space, range(10), examples)
    drawn(figure)
    votes = [bar.get_height() for bar in figure.axes[1].patches]
    assert votes == pytest.approx([1 / 4, 1 / 2, 3 / 4, 1, 1, 1, 2 / 3, 1 / 3, 0, 0])
    assert figure.axes[0].get_ylabel() == "hypotheses (12 of 55 possible)"


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PrioryError) as error:
        plots.posterior_curves(bags(), LIMES)
    assert str(error.value) == "figures need matplotlib: pip install 'priory[plots]'."


@pytest.mark.parametrize("name", ["candy_bags", "next_lime", "belief", "version_space"])
def test_the_page_shows_them(name):
    page = ROOT / "docs" / "hypotheses.md"
    assert f"figures/{name}.svg" in page.read_text()
    assert (page.parent / "figures" / f"{name}.svg").stat().st_size > 1000


@pytest.mark.parametrize("draw", [plots.belief, plots.likelihood_curve, lambda space: plots.belief_curve(space, ["b"])])
def test_figures_of_one_proportion_refuse_a_dirichlet_prior(draw):
    with pytest.raises(DataError) as error:
        draw(Continuum(("a", "b", "c")).update("a"))
    assert (
        str(error.value) == "the figure shows one θ with a Beta prior, and the prior is a Dirichlet one: use table()."
    )
