"""Naive Bayes models of tables and texts: reading tables, schemas, statistics, leave-one-out, explanations."""
