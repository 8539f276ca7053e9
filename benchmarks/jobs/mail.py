"""Spam: folders of raw messages, the subject and the text a person would read."""

import email
import email.policy
import json
import sys
from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline


def read_message(path):
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    try:
        body = message.get_body(("plain", "html")).get_content()
        return f"{message['subject']} {message['from']} {body}"
    except (AttributeError, LookupError, ValueError, TypeError):
        return path.read_bytes().decode("latin-1")


def read_folder(folder):
    files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
    return [read_message(file) for file in files], [file.parent.name for file in files]


X, y = read_folder(Path(sys.argv[1]) / "train")
new, truth = read_folder(Path(sys.argv[1]) / "test")
model = make_pipeline(CountVectorizer(binary=True, min_df=2), LogisticRegression(max_iter=1000)).fit(X, y)
p = model.predict_proba(new)
print(json.dumps({"accuracy": accuracy_score(truth, model.predict(new)), "log_loss": log_loss(truth, p)}))
