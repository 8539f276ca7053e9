"""The scikit-learn estimators; the drop-ins for its naive Bayes classifiers are in `priory.naive_bayes`."""
