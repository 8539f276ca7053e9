"""A second reader of model files, written from docs/format.md in plain Python and NumPy; it imports nothing of priory.

    tree = read_model("model.priory")       parameters and what was learned, as dictionaries
    log_p = answer(tree, rows)              (rows, classes): log p(c | x) of rows as dictionaries, or of texts

It reads classifiers of tables and texts with families chosen by evidence, corrected or plain.
"""

from second_reader.answers import answer as answer
from second_reader.model_file import RefusedError as RefusedError
from second_reader.model_file import read_model as read_model
