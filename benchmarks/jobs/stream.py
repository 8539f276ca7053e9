"""A stream whose meaning drifts: a model of the last three months, judged on the next."""

import json
import sys
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

months = [pd.read_csv(Path(sys.argv[1]) / f"month-{month}.csv") for month in range(1, 8)]
encode = make_column_transformer(
    (TfidfVectorizer(min_df=2), "message"),
    (OneHotEncoder(handle_unknown="ignore"), ["product"]),
    (StandardScaler(), ["age"]),
)
for month in range(3, 7):  # nothing can be forgotten: fit again
    window = pd.concat(months[month - 3 : month])
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(window, window["team"])
truth, p = months[6]["team"], model.predict_proba(months[6])
print(json.dumps({"accuracy": accuracy_score(truth, model.predict(months[6])), "log_loss": log_loss(truth, p)}))
