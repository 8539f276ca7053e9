"""Naive Bayes as a schema and statistics: families of columns, a sample of rows, explanations."""
