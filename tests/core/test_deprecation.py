"""Old names of parameters: they work, they warn, and nobody who uses the new ones sees a difference."""

import inspect
from dataclasses import dataclass, replace

import pytest
from sklearn.base import BaseEstimator, clone

import priory as pr
from priory.bag_of_words.tokenizer import Tokenizer
from priory.core.deprecation import rename_arguments, rename_parameters
from priory.families import Text

TEXTS, LABELS = ["win cash now", "cash prize", "lunch at noon?"], ["spam", "spam", "ham"]


@rename_parameters(least="min_length", most="max_length")
class Estimator(BaseEstimator):
    def __init__(self, kind="word", *, min_length=2, max_length=9):
        self.kind = kind
        self.min_length = min_length
        self.max_length = max_length


@rename_parameters(least="min_length")
@dataclass(frozen=True)
class Record:
    min_length: int = 2


def test_old_names_work_and_the_warning_names_the_new_one():
    with pytest.warns(FutureWarning) as caught:
        model = Estimator("char", least=3)
    assert [str(w.message) for w in caught] == [
        "Estimator: the parameter 'least' is now called 'min_length'; the old name will be removed."
    ]
    assert caught[0].filename == __file__
    assert model.get_params() == {"kind": "char", "min_length": 3, "max_length": 9}
    with pytest.warns(FutureWarning, match="'most' is now called 'max_length'"):
        assert model.set_params(most=4).max_length == 4


def test_new_names_do_not_warn_and_scikit_learn_sees_them_alone():
    assert list(inspect.signature(Estimator).parameters) == ["kind", "min_length", "max_length"]
    assert clone(Estimator(min_length=5).set_params(max_length=6)).get_params() == {
        "kind": "word",
        "min_length": 5,
        "max_length": 6,
    }


def test_a_frozen_dataclass_keeps_its_ways():
    with pytest.warns(FutureWarning, match="Record: the parameter 'least'"):
        assert Record(least=4) == Record(min_length=4)
    assert replace(Record(), min_length=7) == Record(7)


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="Estimator: 'least' and 'min_length' are the same parameter"):
        Estimator(least=1, min_length=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'fewest'"):
        Estimator(fewest=1)


def test_functions_have_old_names_too():
    @rename_arguments(most="max_tokens")
    def list_tokens(label, max_tokens=20):
        return label, max_tokens

    with pytest.warns(FutureWarning, match="list_tokens: the parameter 'most' is now called 'max_tokens'"):
        assert list_tokens("spam", most=5) == ("spam", 5)
    assert list_tokens("spam", 6) == ("spam", 6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"unit": "char"}, {"analyzer": "char"}),
        ({"least": 1}, {"min_token_length": 1}),
        ({"ngrams": (1, 2)}, {"ngram_range": (1, 2)}),
        ({"extra": "?"}, {"extra_tokens": "?"}),
        ({"most": 100}, {"max_tokens": 100}),
    ],
)
def test_text_classifier_takes_its_old_parameters(old, new):
    [(old_name, value)], [new_name] = old.items(), new
    with pytest.warns(FutureWarning, match=f"{old_name!r} is now called {new_name!r}"):
        model = pr.TextClassifier(**old).fit(TEXTS, LABELS)
    assert model.get_params()[new_name] == value
    assert model.vocabulary_ == pr.TextClassifier(**new).fit(TEXTS, LABELS).vocabulary_
    with pytest.warns(FutureWarning, match=f"{old_name!r} is now called {new_name!r}"):
        assert pr.TextClassifier().set_params(**old).get_params() == model.get_params()


def test_tokenizer_text_and_evidence_take_their_old_parameters():
    with pytest.warns(FutureWarning, match="is now called"):
        old = Tokenizer(unit="word", least=1, ngrams=(1, 2), extra="!")
    assert old == Tokenizer(analyzer="word", min_token_length=1, ngram_range=(1, 2), extra_tokens="!")
    with pytest.warns(FutureWarning, match="Text: the parameter 'tokens' is now called 'tokenizer'"):
        assert Text(tokens=old) == Text(tokenizer=old)
    model = pr.TextClassifier().fit(TEXTS, LABELS)
    with pytest.warns(FutureWarning, match="'most' is now called 'max_tokens'"):
        assert model.evidence("spam", most=1) == model.evidence("spam", max_tokens=1)
