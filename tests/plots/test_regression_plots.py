"""The figures of regression, and the page that shows them."""

import re
import sys

import numpy as np
import pytest

from paths import ROOT
from priory import plots
from priory.errors import MissingDependencyError
from priory.regression.linear_posterior import NormalInverseGamma
from priory.regression.linear_regression import BayesianLinearRegression

X, Y, GRID = np.arange(6.0)[:, None], np.array([0.1, 1.2, 1.9, 3.2, 3.9, 5.1]), np.linspace(-1, 7, 9)
PAGE = ROOT / "docs" / "regression.md"


@pytest.fixture
def model():
    pytest.importorskip("matplotlib")
    return BayesianLinearRegression(prior=NormalInverseGamma.isotropic(1)).fit(X, Y)


def test_prior_and_posterior_lines_are_drawn(model):
    before, after = plots.prior_lines(model, GRID, size=7), plots.posterior_lines(model, GRID, X, Y, size=7)
    assert len(before.axes[0].lines) == 7
    assert len(after.axes[0].lines) == 8
    np.testing.assert_allclose(after.axes[0].lines[-1].get_ydata(), model.predict(GRID[:, None]))


def test_the_band_is_the_predictive_interval(model):
    figure = plots.predictive_band(model, GRID, X, Y, level=0.8, frequentist=("rival", GRID))
    low, high = model.predict_interval(GRID[:, None], 0.8)
    corners = figure.axes[0].collections[0].get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(low.min())
    assert corners[:, 1].max() == pytest.approx(high.max())
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "80% band",
        "Bayesian mean",
        "rival",
        "data",
    ]


def test_the_same_figure_is_the_same_bytes(model, tmp_path):
    for name in ("a.svg", "b.svg"):
        with plots_hashed():
            plots.predictive_band(model, GRID, X, Y).savefig(tmp_path / name, metadata={"Date": None})
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def plots_hashed():
    import matplotlib

    return matplotlib.rc_context({"svg.hashsalt": "priory"})


def test_without_matplotlib_the_message_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError) as error:
        plots.prior_lines(model, GRID)
    assert str(error.value) == ("figures need matplotlib: pip install 'priory[plots]'.")


@pytest.mark.slow
def test_the_page_runs_and_prints_the_numbers_that_it_shows(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S))
    exec(compile(code, str(PAGE), "exec"), {})
    printed = re.findall(r"-?\d+\.\d+", capsys.readouterr().out)
    shown = [
        n for line in code.splitlines() if "print(" in line for n in re.findall(r"-?\d+\.\d+", line.split("#")[-1])
    ]
    assert [float(n) for n in printed] == pytest.approx([float(n) for n in shown], abs=2e-3)
    assert len(list((tmp_path / "docs" / "figures").iterdir())) == 4
