"""
Densities and regions
=====================

The densities of the classes of iris in one dimension and in two, and the borders between them.
"""

from sklearn.datasets import load_iris

from priory import NaiveBayes, plots
from priory.naive_bayes import GaussianBayes

iris = load_iris(as_frame=True)
species = iris.target_names[iris.target]
length = iris.data[["petal length (cm)"]]
one = plots.class_densities(NaiveBayes.textbook().fit(length, species), length, species)

# %%
# Naive Bayes: ellipses along the axes.
petals = iris.data[["petal length (cm)", "petal width (cm)"]]
naive = plots.decision_regions(NaiveBayes.textbook().fit(petals, species), petals, species)

# %%
# One Gaussian with covariance for each class.
full = plots.decision_regions(GaussianBayes(estimate="ml").fit(petals, species), petals, species)
