"""
What a model is worth
=====================

Reliability, confusion, and the score against the number of rows: nothing is fitted again.
"""

from sklearn.datasets import load_iris

from priory import NaiveBayes, plots, score_by_rows

iris = load_iris()
X, y = iris.data, iris.target_names[iris.target]
model = NaiveBayes.textbook().fit(X, y)
scores = model.evaluate(X, y)
reliability = plots.reliability_diagram(scores)

# %%
confusion = plots.confusion_matrix(scores)

# %%
# How well each class is told from the others, at every threshold.
roc = plots.roc_curves(scores)

# %%
curve = plots.learning_curve(score_by_rows(model, X, y), "accuracy")
