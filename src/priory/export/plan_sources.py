"""Which classifiers become scoring plans, and how: tables, texts, and the drop-ins on arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy import ndarray as Array

from priory.calibration import logit_terms
from priory.calibration.corrections import CalibratedModel
from priory.errors import DataError
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.export.scoring_plan import (
    InputColumn,
    Linear,
    ScoringPlan,
    Standard,
    TextSum,
    Tokens,
    add_naive_bayes,
    add_pooled_members,
    list_input_columns,
    make_gaps,
    start_plan,
)
from priory.families.base import BinTerm, DensityTerm
from priory.learning.table_rows import TableRows
from priory.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from priory.text.document_models import take_token_rows
from priory.text.token_bags import PAIR_BUCKETS
from priory.text.token_counts import TokenCounts
from priory.text.token_features import CHARACTER_BUCKETS, CHARACTER_NGRAMS, TokenFeatures
from priory.text.tokenizer import decode_vocabulary

Compiler = Callable[[Any, bool], ScoringPlan]
NO_FEATURES = TokenFeatures(np.zeros(0, np.uint8), *(np.zeros(0, np.int64) for _ in range(3)))


def compile_plan(fitted: Any, with_rows: bool = True) -> ScoringPlan:
    """Return the steps of a fitted classifier; without training rows if ``with_rows`` is false.

    A model that has no such form raises DataError, which names an alternative.
    """
    compilers: dict[type, Compiler] = {
        NaiveBayes: _compile_table,
        TextClassifier: _compile_texts,
        GaussianNB: _compile_numbers(_add_gaussians),
        BernoulliNB: _compile_numbers(_add_booleans),
        MultinomialNB: _compile_numbers(_add_counts),
        ComplementNB: _compile_numbers(_add_counts),
        CategoricalNB: _compile_numbers(_add_categories),
    }
    if type(fitted) not in compilers:
        known = ", ".join(kind.__name__ for kind in compilers)
        raise DataError(f"a {type(fitted).__name__} cannot be exported; these can: {known}.")
    if hasattr(fitted, "separator_"):
        raise DataError("the model has several labels for each row; export a model of one class for each row.")
    return compilers[type(fitted)](fitted, with_rows)


def _compile_table(fitted: NaiveBayes, with_rows: bool) -> ScoringPlan:
    learned = fitted.learned_
    calibrated, rows = learned.calibrated(), cast(TableRows, learned.rows)
    model: Any = calibrated.model
    schema, corrections = model.schema, calibrated.corrections
    kinds = {name: block.kind for block in schema.blocks for name in block.names}
    for name, values in rows.list_categories(learned.statistics).items():
        if values.dtype.kind not in "OUS" or not all(isinstance(value, str) for value in values.tolist()):
            kinds[name] = "number" if len(values) else "label"
    columns = list_input_columns([name for name in schema.names if name in kinds], kinds)
    places = {column.name: k for k, column in enumerate(columns)}
    plan = start_plan(columns, calibrated)
    plan.notes += [f"column {name!r} was written as {form}: give numbers" for name, form in schema.formats]
    plan.notes += [f"column {name!r} holds times of {zone}: give local times" for name, zone in schema.zones if zone]
    texts = [places[b.names[0]] for b in schema.blocks if b.kind == "text"]
    if corrections is None or not corrections.members:
        add_naive_bayes(plan, calibrated, places)
        _add_texts(plan, calibrated, texts)
        return plan
    coded = [places[name] for block in schema.blocks if block.kind != "text" for name in block.names]
    codes = add_pooled_members(plan, corrections, coded)
    _add_texts(plan, calibrated, texts)
    plan.gaps = make_gaps(plan, corrections, codes, texts, model.estimated_log_prior(), with_rows)
    return plan


def _compile_texts(fitted: TextClassifier, with_rows: bool) -> ScoringPlan:
    learned = fitted.learned_
    if getattr(learned.rows.parameters, "unlabelled", False):
        raise DataError("a model that uses texts without labels cannot be exported; train it without unlabelled=True.")
    calibrated = learned.calibrated()
    plan = start_plan([InputColumn("text", "text", "text")], calibrated)
    corrections = calibrated.corrections
    if corrections is not None and corrections.members:
        add_pooled_members(plan, corrections, [])
    elif corrections is not None and corrections.tempering.weights[0] != 1.0:
        raise DataError("a text model that is only tempered cannot be exported; set refine='auto', or calibrate=False.")
    _add_texts(plan, calibrated, [0])
    return plan


def _add_texts(plan: ScoringPlan, calibrated: CalibratedModel, places: list[int]) -> None:
    """Add the evidence of each text, tempered if the model is, and the weights of its features."""
    model: Any
    model, blocks = calibrated.model.take_texts()
    corrections, is_alone = calibrated.corrections, not hasattr(model, "schema")
    has_members = corrections is not None and bool(corrections.members)
    terms = corrections.terms if corrections is not None and has_members else ()
    tables = [term.table for term in terms if isinstance(term, logit_terms.TokenWeightTable)]
    start = 0
    for t, (place, block) in enumerate(zip(places, blocks, strict=True)):
        text = model.text if is_alone else model.schema.blocks[t].text_family().build_model(model.estimate)
        record = model.record if is_alone else model.statistics.parts[t][0]
        part = 1 + int(calibrated.model.find_parts()[block][0])
        features = corrections.tokens[t] if corrections is not None and corrections.tokens else NO_FEATURES
        weights = tables[0][start : start + len(features)] if tables else np.zeros((0, len(plan.classes)))
        start += len(features)
        tempering, temper = None if corrections is None else corrections.tempering, (1.0, 0.0)
        if tempering is not None:
            temper = float(tempering.weights[part]), float(tempering.exponents[part])
        counts = _take_counts(text, record)
        words, is_feature, own = _join_features(counts.tokens(), features, weights)
        found = text.token_weights(record)
        table = np.asarray(take_token_rows(found.table, np.arange(len(counts))))
        table = np.pad(table, ((0, len(words) - len(table)), (0, 0)))
        hashed = features.pairs, features.characters, (PAIR_BUCKETS, CHARACTER_BUCKETS), CHARACTER_NGRAMS
        tokens = plan.add(plan.tokens, Tokens(place, text.vocabulary.tokenizer, words, *hashed))
        given = tokens, table, np.asarray(found.constant, dtype=float), text.binary, *temper
        plan.terms.append(TextSum(*given, corrections is not None, not is_alone, is_feature, own))


def _take_counts(text: Any, record: Any) -> TokenCounts:
    """The counts of the tokens of a text, if other languages can read it."""
    counts, tokenizer = text.select_counts(record), text.vocabulary.tokenizer
    if not isinstance(counts, TokenCounts) or getattr(text.vocabulary, "unknown", False):
        raise DataError("hashed words, and a slot for unknown ones, cannot be exported; train without buckets.")
    if tokenizer.stem is not None or tokenizer.reader != "text":
        raise DataError("stems and mail are read by Python alone; train without stem, on texts, to export.")
    return counts


def _join_features(words: list[str], features: TokenFeatures, weights: Array) -> tuple[list[str], Array, Array]:
    """All words, which of them are features (words,), and the weights of words, pairs and n-grams of characters."""
    known = decode_vocabulary(features.arena, features.ends)
    row = {word: k for k, word in enumerate(dict.fromkeys([*words, *known]))}
    of_feature = np.array([row[word] for word in known], dtype=np.int64)
    own = np.zeros((len(row) + len(weights) - len(known), weights.shape[1]))
    own[of_feature], own[len(row) :] = weights[: len(known)], weights[len(known) :]
    return list(row), np.isin(np.arange(len(row)), of_feature), own


# -- arrays of numbers -----------------------------------------------------------------------------------------------


def _compile_numbers(add_terms: Callable[[ScoringPlan, Any, Any], None]) -> Compiler:
    def compile_numbers(fitted: Any, with_rows: bool) -> ScoringPlan:
        if "corrections_" in vars(fitted):
            raise DataError("corrections of this class cannot be exported; fit the model without them.")
        names = getattr(fitted, "feature_names_in_", [f"x{j}" for j in range(fitted.n_features_in_)])
        model = fitted.learned_.model()
        prior = model.log_prior()
        columns = [InputColumn(str(name), "number", str(name)) for name in names]
        plan = ScoringPlan(fitted.classes_.tolist(), columns, constant=prior.copy(), fallback=prior, prior=prior)
        plan.base, plan.shift = np.exp(prior), np.zeros(len(prior))
        add_terms(plan, fitted, model)
        return plan

    return compile_numbers


def _add_gaussians(plan: ScoringPlan, fitted: Any, model: Any) -> None:
    centre, precision, constant = model.density_parameters()
    units = np.broadcast_to(model.moments.units(), centre.shape[1:])
    for j, unit in enumerate(units.tolist()):
        given = {"centre": centre[:, j], "precision": precision[:, j], "constant": constant[:, j]}
        plan.add_column_term(j, DensityTerm("normal", given, unit))


def _add_booleans(plan: ScoringPlan, fitted: Any, model: Any) -> None:
    yes = fitted.feature_log_prob_  # (classes, columns): log P(x = 1 | c)
    with np.errstate(divide="ignore"):
        no = np.log1p(-np.exp(yes))
    if not (np.isfinite(yes).all() and np.isfinite(no).all()):
        raise DataError("a column that rules a class out cannot be exported; use an alpha above 0.")
    if fitted.binarize is None:  # x log p + (1 - x) log(1 - p)
        _add_slopes(plan, yes - no)
        plan.constant = plan.constant + no.sum(axis=1)
        return
    for j in range(yes.shape[1]):
        cut = np.nextafter(np.array([float(fitted.binarize)]), np.inf)
        plan.add_column_term(j, BinTerm(cut, np.stack([no[:, j], yes[:, j]], axis=1)))


def _add_counts(plan: ScoringPlan, fitted: Any, model: Any) -> None:
    if not np.isfinite(fitted.feature_log_prob_).all():
        raise DataError("a column that rules a class out cannot be exported; use an alpha above 0.")
    _add_slopes(plan, fitted.feature_log_prob_)
    plan.constant = plan.constant + model.class_term() - model.log_prior()


def _add_categories(plan: ScoringPlan, fitted: Any, model: Any) -> None:
    for j, table in enumerate(model.log_probability_tables()):  # as in predict, 1.5 is category 1
        plan.add_column_term(j, BinTerm(np.arange(1.0, table.shape[1]), table))


def _add_slopes(plan: ScoringPlan, slopes: Array) -> None:
    numbers = [plan.add(plan.numbers, Standard(j)) for j in range(len(plan.columns))]
    plan.terms.append(Linear(numbers, slopes.T))
