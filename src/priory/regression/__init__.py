"""Bayesian linear and logistic regression: posterior = prior + cross products of the data."""
