"""Learning without scikit-learn: what was learned as a value that adds, and the one object that changes."""
