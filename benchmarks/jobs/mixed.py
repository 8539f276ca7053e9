"""Tickets: dates, identifiers, free text and gaps in one table."""

import json
import sys
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def read_tickets(name):
    table = pd.read_csv(Path(sys.argv[1]) / name, parse_dates=["opened"])
    table["hour"] = table["opened"].dt.hour.astype("Int64").astype(str)
    table["weekday"] = table["opened"].dt.day_name().fillna("missing")
    table["month"] = table["opened"].dt.month_name().fillna("missing")
    table["message"] = table["message"].fillna("")
    return table.drop(columns=["ticket", "opened", "team"]), table["team"]


X, y = read_tickets("train.csv")
new, truth = read_tickets("test.csv")
encode = make_column_transformer(
    (TfidfVectorizer(min_df=2), "message"),
    (OneHotEncoder(handle_unknown="ignore"), ["product", "hour", "weekday", "month"]),
    (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "calls"]),
)
model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)
p = model.predict_proba(new)
print(json.dumps({"accuracy": accuracy_score(truth, model.predict(new)), "log_loss": log_loss(truth, p)}))
