"""Calibrate a model's probabilities, by corrections fitted to its out-of-fold predictions."""
