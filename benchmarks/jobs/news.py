"""News topics: a folder for each topic."""

import json
import sys
from pathlib import Path

from sklearn.datasets import load_files
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline

train, test = (load_files(Path(sys.argv[1]) / part, encoding="latin-1") for part in ("train", "test"))
model = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), LogisticRegression(C=10, max_iter=1000))
model.fit(train.data, train.target)
p = model.predict_proba(test.data)
print(json.dumps({"accuracy": accuracy_score(test.target, p.argmax(axis=1)), "log_loss": log_loss(test.target, p)}))
