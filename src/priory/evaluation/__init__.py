"""Evaluation of probabilities: scores with intervals, curves, reliability, decisions and the Bayes error rate."""
