"""Corrections that make probabilities honest, all fitted to out-of-fold answers."""
