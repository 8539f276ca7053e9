"""Hypothesis spaces: maximum likelihood, MAP, Bayes-optimal and Gibbs predictions, and description length."""
