"""The figures of the course: each is drawn in one call, and shows the numbers of the model."""

import math
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris

import priory as pr
from priory import plots
from priory.bayes import JointTable
from priory.errors import DataError
from priory.estimators.learning_curve import order_rows
from priory.families import (
    Bernoulli,
    Binomial,
    Categorical,
    Gamma,
    Gaussian,
    Multinomial,
    Poisson,
)
from priory.plots.classifier_plots import read_nomogram
from priory.regression.linear_posterior import NormalInverseGamma
from test_worked_examples import table
from worked_examples import WORKED_EXAMPLES

X, Y = load_iris(return_X_y=True)
SHARES = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}


def candy_bags():
    prior = dict(zip(SHARES, (0.1, 0.2, 0.4, 0.2, 0.1), strict=True))
    return pr.Hypotheses(prior, {h: {"lime": p, "cherry": 1 - p} for h, p in SHARES.items()})


def many_bags(n):
    return pr.Hypotheses(None, {f"bag {i}": {"lime": i / (n - 1), "cherry": 1 - i / (n - 1)} for i in range(n)})


def test_the_border_is_where_the_answer_changes():
    model = pr.NaiveBayes.textbook().fit(X[:, 2:3], Y)
    figure = plots.class_densities(model, X[:, 2], Y)
    borders = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert len(borders) == 2
    for border in borders:
        below, above = model.predict([[border - 0.05], [border + 0.05]])
        assert below != above


@pytest.mark.parametrize("model", [pr.NaiveBayes.textbook(), pr.naive_bayes.GaussianBayes()], ids=["naive", "full"])
def test_regions_are_drawn_for_two_columns_only(model):
    assert plots.decision_regions(model.fit(X[:, 2:], Y), X[:, 2:], Y).axes[0].collections
    with pytest.raises(DataError, match="the model has 4 columns; fit one on 2 for this figure"):
        plots.decision_regions(model.fit(X, Y), X, Y)


def test_the_bars_are_the_posteriors_of_the_lecture():
    figure = plots.posterior_bars(candy_bags(), ["lime"] * 3)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert len(panels) == 4
    for n, axes in enumerate(panels):
        heights = [bar.get_height() for bar in axes.patches]
        expected = WORKED_EXAMPLES["candy_bags"]["expect"][n]["posterior"]
        assert heights == pytest.approx([float(p) for p in expected], abs=1e-12)


def test_axes_have_the_names_of_the_columns():
    petals = load_iris(as_frame=True).data[["petal length (cm)", "petal width (cm)"]]
    model = pr.naive_bayes.GaussianBayes().fit(petals, Y)
    axes = plots.decision_regions(model, petals, Y).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == tuple(petals.columns)
    one = pr.NaiveBayes.textbook().fit(petals.iloc[:, :1], Y)
    assert plots.class_densities(one, petals.iloc[:, :1], Y).axes[0].get_xlabel() == "petal length (cm)"
    assert plots.class_densities(one, petals.iloc[:, :1], Y, "length").axes[0].get_xlabel() == "length"


def test_hypotheses_that_are_equally_probable_are_no_map_hypothesis():
    panels = plots.posterior_bars(many_bags(30), ["lime"]).axes
    assert [axes.texts[0].get_text() for axes in panels[:2]] == ["all equal", "MAP bag 29"]


def test_combinations_need_many_more_parameters_than_columns():
    full, naive = plots.parameter_growth(max_columns=11, classes=2).axes[0].lines
    assert (naive.get_ydata()[-1], full.get_ydata()[-1]) == (24, 4096)  # as for eleven words
    with pytest.raises(DataError, match="1 values, 2 classes: use at least 1, 2 and 2"):
        plots.parameter_growth(values=1)


@pytest.mark.parametrize("n", [30, 55])
def test_many_hypotheses_have_few_names(n):
    observations = ["lime", "cherry", "lime"] * 5
    figure = plots.posterior_curves(many_bags(n), observations)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(names) == 8
    assert f"{n - 7} others" in names
    assert len(plots.posterior_bars(many_bags(n), observations).axes[0].get_xticks()) == 0


@pytest.mark.parametrize("family", [Gaussian, Gamma, Poisson, Gaussian(location=3.0)], ids=str)
def test_a_fitted_family_is_drawn_over_its_data(family):
    values = np.random.default_rng(0).poisson(4, 50) + (0.0 if family is Poisson else 0.5)
    lines = plots.fitted_family(family, values).axes[0].lines
    grid, curve = lines[0].get_data()
    area = curve.sum() if family is Poisson else np.trapezoid(curve, grid)
    assert 0.9 < area < 1.01
    with pytest.raises(DataError, match="give two or more"):
        plots.fitted_family(family, [1.0])


@pytest.mark.parametrize(("family", "highest"), [(Bernoulli, 1), (Binomial(trials=5), 5), (Poisson, 3)], ids=str)
def test_a_family_of_counts_is_drawn_where_it_has_probability(family, highest):
    outcomes, _ = plots.fitted_family(family, [0, 1, 1]).axes[0].lines[0].get_data()
    assert outcomes.tolist() == list(range(highest + 1))


@pytest.mark.parametrize("family", [Categorical, Multinomial])
def test_a_family_that_is_not_of_single_numbers_is_not_drawn(family):
    with pytest.raises(DataError, match="is not a family of single numbers"):
        plots.fitted_family(family, [1.0, 2.0])


def test_the_likelihood_of_theta_peaks_at_its_ml_value():
    space = pr.Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3)
    theta, likelihood = plots.likelihood_curve(space).axes[0].lines[0].get_data()
    assert theta[np.argmax(likelihood)] == pytest.approx(0.7, abs=0.002)
    assert likelihood.max() == pytest.approx(0.7**7 * 0.3**3, rel=1e-4)


def test_all_words_are_drawn_for_each_class():
    model = pr.TextClassifier.textbook("multinomial").fit(["win cash now", "see you at noon"], ["spam", "ham"])
    assert model.word_probabilities_.sum(axis=1) == pytest.approx([1.0, 1.0])
    figure = plots.word_probabilities(model)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["ham", "spam"]
    assert len(figure.axes[0].collections[0].get_segments()) == 7


def test_the_errors_of_the_sigmoid_unit_are_drawn():
    unit = pr.SigmoidUnit(steps=5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    assert plots.error_per_step(unit).axes[0].lines[0].get_ydata() == pytest.approx(unit.errors_)


def test_the_nomogram_adds_up_to_predict_proba():
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    model = pr.NaiveBayes.textbook("laplace").fit(rows, play)
    points = read_nomogram(model, "yes")
    for row in rows:
        log_odds = points["prior"][""] + sum(points[name][value] for name, value in row.items())
        assert 1 / (1 + math.exp(-log_odds)) == pytest.approx(model.predict_proba([row])[0, 1], rel=1e-12)
    drawn = plots.nomogram(model, "yes")
    assert {"sunny", "rain", "overcast", "strong"} <= {text.get_text() for text in drawn.axes[0].texts}


def test_the_nomogram_shows_values_that_rule_a_class_out():
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    model = pr.NaiveBayes.textbook().fit(rows, play)  # overcast days are always played on
    for label, text in (("yes", "overcast: certain"), ("no", "overcast: impossible")):
        axes = plots.nomogram(model, label).axes[0]
        assert text in {shown.get_text() for shown in axes.texts}
        assert [tick.get_text() for tick in axes.get_yticklabels()][1] == "outlook"  # it reaches farthest
        (arrow,) = (line for line in axes.lines if line.get_marker() in ("<", ">"))
        others = [x for line in axes.lines if line.get_marker() == "o" for x in line.get_xdata()]
        assert (max(others) < arrow.get_xdata()[0]) if label == "yes" else (min(others) > arrow.get_xdata()[0])


def test_a_nomogram_is_for_models_without_corrections():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 300)
    rows = [{"a": "xy"[int(rng.random() < 0.3 + 0.4 * c)], "b": "uv"[int(rng.random() < 0.5)]} for c in label]
    plain = pr.NaiveBayes(calibrate=False).fit(rows, label)
    points = read_nomogram(plain, 1)
    for row in rows[:20]:
        log_odds = points["prior"][""] + sum(points[name][value] for name, value in row.items())
        assert 1 / (1 + math.exp(-log_odds)) == pytest.approx(plain.predict_proba([row])[0, 1], rel=1e-9)
    with pytest.raises(DataError, match="the model has corrections, by which columns do not simply add up"):
        plots.nomogram(pr.NaiveBayes().fit(rows, label))
    with pytest.raises(DataError, match="a nomogram is for two classes"):
        plots.nomogram(pr.NaiveBayes.textbook().fit(X, Y))


def test_dependent_columns_are_found_and_independent_ones_are_not():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, 3000)
    x = c + rng.normal(size=3000)
    found = pr.measure_dependence({"x": x, "copy": x**3, "free": c + rng.normal(size=3000)}, c)
    assert [set(pair[:2]) for pair in found.violations()] == [{"x", "copy"}]
    assert "1 of 3 pairs" in found.verdict
    assert plots.dependence_map(found).get_suptitle().startswith("1 of 3 pairs")
    free = {"a": c + rng.normal(size=3000), "b": 2 * c + rng.normal(size=3000)}
    assert pr.measure_dependence(free, c).verdict.startswith("None of the 1 pairs")


def test_a_learning_curve_needs_no_refit():
    model = pr.naive_bayes.GaussianNB().fit(X, Y)
    curve = pr.score_by_rows(model, X, Y, [30, 100], random_state=1)
    order = order_rows(Y, 1)
    assert sorted(order) == list(range(len(Y)))
    assert len(set(Y[order[:3]])) == 3
    for size, scores in curve.items():
        refitted = pr.naive_bayes.GaussianNB().fit(X[order[:size]], Y[order[:size]])
        rest = np.sort(order[size:])
        assert scores.accuracy.value == pytest.approx(np.mean(refitted.predict(X[rest]) == Y[rest]))
    assert plots.learning_curve(curve, "accuracy").axes
    with pytest.raises(DataError, match="each must be from 3 to 149"):
        pr.score_by_rows(model, X, Y, [150])


def test_the_plane_of_a_line_holds_the_share_that_it_says():
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 1.0, size=(15, 1))
    model = pr.BayesianLinearRegression(prior=NormalInverseGamma.isotropic(1)).fit(x, 2 * x[:, 0] + rng.normal(size=15))
    figure = plots.belief_plane(model.posterior_)
    outer = max(figure.axes[0].collections[-1].get_paths(), key=lambda path: np.ptp(path.vertices[:, 0]))
    lines = model.sample_lines(4000, random_state=0)
    inside = outer.contains_points(np.column_stack([lines.intercept, lines.coef[:, 0]]))
    assert inside.mean() == pytest.approx(0.95, abs=0.015)


def test_lines_are_drawn_from_a_declared_prior_before_any_data():
    model = pr.BayesianLinearRegression(prior=NormalInverseGamma.isotropic(1, strength=1.0, shape=3.0))
    assert len(plots.prior_lines(model, np.linspace(-3, 3, 5), size=7).axes[0].lines) == 7


@pytest.mark.parametrize(
    "thing",
    [
        candy_bags(),
        Gaussian(),
        pr.Scores.of(["a", "b"] * 10, np.tile([[0.9, 0.1], [0.2, 0.8]], (10, 1)), ["a", "b"]),
        pr.NaiveBayes.textbook().fit(X, Y),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_notebooks_show_tables_without_inline_styles(thing):
    html = thing._repr_html_()
    assert html.startswith("<style>")
    assert '<table class="priory">' in html
    assert "style=" not in html
    assert "<script" not in html


def test_the_areas_of_a_mosaic_are_the_probabilities():
    cells = {("yes", "yes"): 0.12, ("yes", "no"): 0.08, ("no", "yes"): 0.08, ("no", "no"): 0.72}
    table = JointTable(["toothache", "cavity"], cells)
    bars = plots.mosaic(table).axes[0].patches
    assert [bar.get_width() * bar.get_height() for bar in bars] == pytest.approx(list(cells.values()))
    with pytest.raises(DataError, match="1 variables; marginalise it to two"):
        plots.mosaic(table.marginalise("cavity"))


def test_bars_of_bits_are_as_long_as_the_description():
    bags = pr.Hypotheses(likelihood={h: {"lime": p, "cherry": 1 - p} for h, p in SHARES.items()}).update("lime")
    bars = plots.description_lengths(bags).axes[0].patches
    tops = [bar.get_y() + bar.get_height() for bar in bars[4:]]
    assert tops == pytest.approx([sum(bags.bits[h]) for h in bags.possible])


def test_expected_costs_cross_at_the_threshold():
    axes = plots.expected_costs([[0, 1], [10, 0]], ["healthy", "ill"], reject=0.4).axes[0]
    healthy, ill, ask, threshold = axes.lines
    assert threshold.get_xdata()[0] == pytest.approx(1 / 11)
    assert ask.get_ydata()[0] == 0.4
    assert np.interp(1 / 11, healthy.get_xdata(), healthy.get_ydata()) == pytest.approx(
        np.interp(1 / 11, ill.get_xdata(), ill.get_ydata())
    )
    with pytest.raises(DataError, match="this figure is for two classes"):
        plots.expected_costs(np.eye(3), "abc")


def test_a_notebook_shows_a_figure_without_pyplot():
    figure = plots.parameter_growth(max_columns=3, values=2)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(pickle.loads(pickle.dumps(figure)).axes) == len(figure.axes)
