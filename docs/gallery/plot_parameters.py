"""
The curse of dimensionality
===========================

How many parameters are needed with every column that is added: naive Bayes, and a probability for each combination.
"""

from priory import plots

figure = plots.parameter_growth(max_columns=20, values=3)
