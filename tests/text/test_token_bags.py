"""Texts that were read already: they are learned, forgotten and scored as the texts themselves."""

from itertools import product

import numpy as np
import pytest

from priory.core.content_hash import hash_content
from priory.text.document_models import BAG_MODELS
from priory.text.text_model import TextModel
from priory.text.tokenizer import Tokenizer
from priory.text.vocabulary import build_vocabulary

TEXTS = ["win cash now now", "lunch at noon?", "", "cash prize win Ärger"]
GROUP = np.array([0, 1, 1, 0])
TOKENIZERS = [
    Tokenizer(),
    Tokenizer(ngram_range=(1, 2)),
    Tokenizer(analyzer="char", ngram_range=(2, 3)),
    Tokenizer(stem="english"),
]
VOCABULARIES = [{}, {"buckets": 64}, {"vocabulary": ("cash", "win", "lunch"), "unknown": True}]


@pytest.mark.parametrize(("tokenizer", "limits", "model"), list(product(TOKENIZERS, VOCABULARIES, BAG_MODELS)))
def test_bags_stand_for_texts(tokenizer, limits, model):
    text = TextModel(model, 1.0, build_vocabulary(tokenizer, **limits))
    bags = text.vocabulary.read_bags(TEXTS)
    assert bags.find_fault() is None
    record = text.count(TEXTS, GROUP, 2)
    assert not (record - text.count(bags, GROUP, 2)).counts.any()
    assert text.score(record, bags) == pytest.approx(text.score(record, TEXTS))
    assert text.leave_one_out(record, bags, GROUP) == pytest.approx(text.leave_one_out(record, TEXTS, GROUP))


def test_order_and_batches_of_bags_do_not_matter():
    vocabulary = build_vocabulary(Tokenizer())
    whole = vocabulary.read_bags(TEXTS)
    one, others = vocabulary.read_bags(TEXTS[2:]), vocabulary.read_bags(TEXTS[:2])
    assert hash_content(one.append(others)[np.array([2, 3, 0, 1])].drop_absent_tokens()) == hash_content(whole)
    assert hash_content(whole[1:2].drop_absent_tokens()) == hash_content(vocabulary.read_bags(TEXTS[1:2]))
