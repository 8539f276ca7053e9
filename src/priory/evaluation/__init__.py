"""What probabilities are worth: scores with their intervals, curves, reliability, decisions and the Bayes rate."""
