"""
Which columns violate the naive assumption
==========================================

The conditional mutual information of every pair of columns, given the class.
"""

from sklearn.datasets import load_iris

from priory import measure_dependence, plots

iris = load_iris(as_frame=True)
dependence = measure_dependence(iris.data, iris.target)
figure = plots.dependence_map(dependence)
print(dependence.verdict)
