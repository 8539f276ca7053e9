"""Models of tables: model = schema + statistics. Tables in, naive Bayes, leave-one-out, explanations."""
