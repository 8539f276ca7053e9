"""`NaiveBayes`: mixed tables as they are, every column with the family that explains it best."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from priory.calibration.feature_encoding import TableEncoding
from priory.calibration.smoothing_search import choose_smoothing, sample_row_indices
from priory.calibration.stacking import CorrectionRows, MemberSpec
from priory.calibration.tempering import EvidenceTerms, measure_text_lengths
from priory.core.logspace import log_normalise
from priory.core.registration import count_columns, list_record_types, register_estimator
from priory.core.typing import Array
from priory.errors import DataError, PrioryWarning
from priory.estimators.base import encode_labels
from priory.estimators.self_calibrating import SelfCalibratingClassifier
from priory.families import Text
from priory.families.base import ESTIMATES
from priory.models import naive_bayes as model
from priory.models.explanation import Ledgers
from priory.models.leave_one_out import leave_one_out, leave_one_out_terms
from priory.models.naive_bayes import ModelStatistics, check_class_prior
from priory.models.schema import Schema, family_with_prior
from priory.models.table import Table, read_table

MAX_ROWS_FOR_AUTO = 50_000  # rows: of more, what is fitted to rows is left to be asked for
MAX_CLASSES_FOR_AUTO = 100  # classes: of more, likewise
MAX_CELLS_TO_CALIBRATE = 1 << 16  # cells of the rows that corrections are fitted to
MAX_CELL_PAIRS_FOR_AUTO = 1 << 20  # pairs of cells, for each class but one


@dataclass(frozen=True)
class ColumnReport:
    """What a column was taken for, and why: the log evidence per row, in bits, of every candidate."""

    name: str
    kind: str
    family: str
    bits: dict[str, float]

    def __str__(self) -> str:
        others = ", ".join(f"{name} {b:.2f}" for name, b in self.bits.items() if name != self.family)
        best = f" {self.bits[self.family]:.2f} bits a row" if self.family in self.bits else ""
        return f"{self.name}: {self.family}{best}" + (f" ({others})" if others else "")


@register_estimator(required=("statistics_", "n_features_in_", "_schema"))
class NaiveBayes(SelfCalibratingClassifier):
    """Naive Bayes for tables as they are.

    Takes a pandas, polars or pyarrow table, an array, a list of dicts: numbers, labels, booleans, missing cells (which
    say nothing), labels never seen before, columns by name in any order.

    Parameters
    ----------
    families : "auto", a family, or a dict of column to family
        A family is a name ("gaussian"), a class (`Gaussian`, its prior taken from the data) or an instance
        (`Gaussian(location=0.0)`, a declared prior). "auto" lets the evidence choose, column by column.
    estimate : "predictive", "mean", "map" or "ml"
        Parameters integrated out, or a point estimate of them.
    average : bool
        Average over all 2^d sets of columns instead of using them all: a column counts as far as it matters. Of a
        column of texts every token does.
    alpha : float or "loo", optional
        Virtual examples of each label or bin, the same for all columns; by default as many as the evidence of each
        column asks for. "loo" lets ``fit`` take as many (``alpha_``) as make rows most probable of their own class when
        they are left out (at most 100 of them); from then on that is as good as declared, until the next ``fit``.
    class_prior : "estimated", "uniform", a dict of class to probability, or one probability for each class in order
    missing : "ignore" or "error"
    calibrate : "loo" or False
        Correct the probabilities by what the model says of rows left out, or leave them as naive Bayes has them.
    refine : "auto", True or False
        Let a logistic regression centred on naive Bayes correct it: where it helps, always, or never.
    structure : "auto", "naive" or "aode"
        Columns that depend on the class alone, or each on another column besides: the one that predicts better, or as
        declared. What "auto" tries, it tries on tables of up to 50,000 rows.

    Examples
    --------
    >>> table = [{"outlook": "sunny", "wind": 3.0}, {"outlook": "rain", "wind": 9.0}, {"outlook": "rain", "wind": None}]
    >>> model = NaiveBayes().fit(table, ["yes", "no", "no"])
    >>> model.predict([{"outlook": "sunny", "wind": 4.0}]).tolist()
    ['yes']
    >>> model.forget(table[:1], ["yes"]).class_count_.tolist()  # as if it had never been seen
    [2.0, 0.0]
    """

    alpha_: float
    _schema: Schema
    _requires_all_classes = False

    def __init__(
        self,
        families: Any = "auto",
        *,
        estimate: str = "predictive",
        average: bool = False,
        alpha: Any = None,
        class_prior: Any = "estimated",
        missing: str = "ignore",
        calibrate: Any = "loo",
        refine: Any = "auto",
        structure: str = "auto",
    ) -> None:
        self.families = families
        self.estimate = estimate
        self.average = average
        self.alpha = alpha
        self.class_prior = class_prior
        self.missing = missing
        self.calibrate = calibrate
        self.refine = refine
        self.structure = structure

    def _is_consistent(self) -> bool:
        """Whether there is a record for every candidate of every block of columns, of the class its family makes."""
        schema, parts = self._schema, self.statistics_.parts
        empty = model.make_empty_statistics(schema, self.statistics_.classes[:1])
        widths = [len(block.names) for block in schema.blocks]
        return (
            len(schema.names) == self.n_features_in_
            and list_record_types(empty.parts) == list_record_types(parts)
            and all(count_columns(r, d) == d for records, d in zip(parts, widths, strict=True) for r in records)
        )

    # -- learning ------------------------------------------------------------------------------------------------

    def _finish_fit(self, table: Table, group: Array, weight: Array | None) -> None:
        silent = [
            name for name in self._schema.names if name not in model.find_filled_columns(self._schema, self.statistics_)
        ]
        if len(silent) == len(self._schema.names):
            raise DataError("every cell of X is missing; there is nothing to learn from.")
        if silent:
            warnings.warn(f"columns without a single value say nothing: {silent[:10]}", PrioryWarning, stacklevel=4)
        if (self.class_count_ <= 1).all():
            warnings.warn("no class has two rows: how far each spreads is guessed", PrioryWarning, stacklevel=4)
        if self.alpha == "loo":
            self._choose_alpha(table, group, weight)
        super()._finish_fit(table, group, weight)

    def _choose_alpha(self, table: Table, group: Array, weight: Array | None) -> None:
        """By leaving rows out: what was seen is the same under any prior, only the schema differs."""
        rows = sample_row_indices(table.rows, weight, 100)
        some, own = table.take_rows(rows), group[rows]

        def honest(alpha: float) -> Array:
            self._schema = Schema.of(table, self.families, alpha)
            return self._predict_left_out(some, own)

        self.alpha_ = choose_smoothing(honest, own)
        self._schema = Schema.of(table, self.families, self.alpha_)

    def _effective_alpha(self) -> float | None:
        """The virtual examples the schema is declared with."""
        alpha: float | None = getattr(self, "alpha_", 1.0) if self.alpha == "loo" else self.alpha
        return alpha

    def _read(self, X: Any, reset: bool) -> Table:
        self._check_parameters()
        table = read_table(X)
        if reset:
            _check_not_empty(table)
        elif table.has_names and hasattr(self, "feature_names_in_"):
            extra = [name for name in table.names if name not in self._schema.names]
            if extra:
                warnings.warn(f"ignoring columns the model does not know: {extra[:10]}", PrioryWarning, stacklevel=3)
        self._check_columns(table, reset)
        table.check_finite()
        if self.missing == "error":
            table.check_no_missing()
        if reset:
            self._schema = Schema.of(table, self.families, self._effective_alpha())
        return table

    def _check_columns(self, table: Table, reset: bool) -> None:
        """Remember the columns, or compare: by number where the table has no names."""
        if reset:
            self.n_features_in_ = len(table.names)
            self.__dict__.pop("feature_names_in_", None)
            if table.has_names:
                self.feature_names_in_ = np.array(table.names, dtype=object)
        elif not table.has_names and len(table.names) != self.n_features_in_:
            raise DataError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )

    def _resolve_classes(self, classes: Any, is_first_call: bool) -> Array | None:
        if classes is not None:
            given = np.unique(np.asarray(classes))
            return given if is_first_call else np.union1d(self.classes_, given)
        return None if is_first_call else self.classes_

    def _observe(self, table: Table, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        grown = self._schema.add_columns(table, self.families, self._effective_alpha())
        if grown != self._schema:
            self._schema = grown
            if hasattr(self, "statistics_"):
                self.statistics_ = model.add_empty_blocks(grown, self.statistics_)
        return model.observe_table(self._schema, table, classes, group, weight)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        mine, theirs = self._effective_alpha(), other._effective_alpha()
        if mine != theirs:
            raise DataError(f"the models have different alphas ({mine} and {theirs}); declare one to merge them.")
        if self._schema != other._schema:
            raise DataError(
                "the models have different columns or families; only models of the same schema can be merged."
            )

    def _check_parameters(self) -> None:
        if self.estimate not in ESTIMATES:
            raise DataError(f"estimate is {self.estimate!r}; use one of {', '.join(ESTIMATES)}.")
        if self.missing not in ("ignore", "error"):
            raise DataError(f"missing is {self.missing!r}; use 'ignore' or 'error'.")
        if isinstance(self.alpha, str) and self.alpha != "loo":
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0, 'loo' or None.")
        if isinstance(self.alpha, (int, float)) and not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise DataError(f"alpha is {self.alpha!r}; it must be finite and not negative.")
        if self.refine not in ("auto", True, False):
            raise DataError(f"refine is {self.refine!r}; use 'auto', True or False.")
        if self.structure not in ("auto", "naive", "aode"):
            raise DataError(f"structure is {self.structure!r}; use 'auto', 'naive' or 'aode'.")
        if isinstance(self.class_prior, str) and self.class_prior not in ("estimated", "uniform"):
            raise DataError(f"class_prior is {self.class_prior!r}; use 'estimated', 'uniform', or probabilities.")

    # -- correcting ----------------------------------------------------------------------------------------------

    def _read_cells(self, table: Table) -> list[Any]:
        return self._schema.read_cells(table) or [np.zeros((table.rows, 0))]

    def _correction_rows(
        self, cells: list[Any], encoding: TableEncoding | None, group: Array | None = None
    ) -> CorrectionRows:
        rows, ask = len(cells[0]), (self.estimate, self.average)
        cells = cells[: len(self._schema.blocks)]
        if group is None:
            terms = model.log_likelihood_terms_of_cells(self._schema, self.statistics_, cells, rows, *ask)
        else:
            terms = leave_one_out_terms(self._schema, self.statistics_, cells, group, *ask)
        prior = np.repeat(
            self._estimated_log_prior()[None], rows, axis=0
        )  # a row less of its own class would tell the class
        lengths = np.ones((rows, 1 + terms.shape[2]))
        for block, x in zip(self._schema.blocks, cells, strict=True):
            if block.kind == "text":
                lengths[:, 1 + self._schema.names.index(block.names[0])] = measure_text_lengths(x)
        values = np.concatenate([prior[:, :, None], terms], axis=2)
        return CorrectionRows(EvidenceTerms(values, lengths), cells, encoding, lambda: self._encode_tokens(cells))

    def _encode_tokens(self, cells: list[Any]) -> list[csr_array]:
        found = []
        for block, records, x in zip(self._schema.blocks, self.statistics_.parts, cells, strict=True):
            text = family_with_prior(block.candidates[0], records[0])
            if isinstance(text, Text):
                found.append(text.rows(records[0], x))
        return found

    def _observe_cells(self, cells: list[Any], group: Array, weight: Array | None) -> ModelStatistics:
        return model.observe_cells(self._schema, cells, self.classes_, group, weight)

    def _count_parts(self) -> int:
        return len(self._schema.names)

    def _can_leave_one_out(self) -> bool:
        """Of many rows a whole fold at a time: as honest, and sooner done."""
        return bool(self.statistics_.n.sum() <= MAX_ROWS_FOR_AUTO)

    def _choose_member_specs(self, n_rows: int, encoding: TableEncoding, n_rows_used: int) -> list[MemberSpec]:
        """Every structure that is asked for, with and without refinement, as asked for."""
        small, d = n_rows <= MAX_ROWS_FOR_AUTO and len(self.classes_) <= MAX_CLASSES_FOR_AUTO, len(encoding.sizes)
        pairs = d * (d - 1) // 2 * n_rows_used * (len(self.classes_) - 1)
        room = d > 1 and pairs <= MAX_CELL_PAIRS_FOR_AUTO and encoding.sizes.sum() ** 2 * len(self.classes_) <= 1 << 24
        structure = self.structure if self.structure != "auto" or (small and room) else "naive"
        refine = self.refine if self.refine != "auto" or small else False
        plain = [MemberSpec(name) for name in ("naive", "aode") if structure in (name, "auto")]
        refined = [MemberSpec("naive", "columns")] if structure != "aode" else [MemberSpec("aode", "pairs")]
        if structure == "auto":
            refined.append(MemberSpec("naive", "pairs"))
        if refine == "auto":  # what naive Bayes says may be no help at all
            refined += [MemberSpec("base", kind.features) for kind in refined]
        return (plain if refine is not True else []) + (refined if refine else [])

    def _max_rows_to_calibrate(self) -> int:
        """A few dozen weights need few rows; a refinement that was asked for uses them all."""
        return (
            sys.maxsize if self.refine is True else max(1000, MAX_CELLS_TO_CALIBRATE // (1 + len(self._schema.names)))
        )

    # -- answering -----------------------------------------------------------------------------------------------

    def _resolve_class_prior(self) -> Any:
        return check_class_prior(self.class_prior, self.classes_)

    def _log_prior(self) -> Array:
        return model.log_class_prior(self.statistics_, self._resolve_class_prior())

    def _log_joint(self, table: Table) -> Array:
        return model.log_joint(
            self._schema, self.statistics_, table, self.estimate, self._resolve_class_prior(), self.average
        )

    def explain(self, X: Any) -> Ledgers:
        """The evidence ledger of each row: the prior, one line for each column, and their sum, the log-odds.

        Each line says what it counts for after tempering; "(together)" is what looking at columns together adds.
        """
        check_is_fitted(self, "statistics_")
        table = self._read(X, reset=False)
        terms = model.log_likelihood_terms(self._schema, self.statistics_, table, self.estimate, self.average)
        scale, prior, rest = self._explanation_weights(self._read_cells(table))
        terms *= scale[:, None, 1:]
        names, places = list(self._schema.names), table.find_columns(self._schema.names)
        cells = [[table.get_cell(row, place) for place in places] for row in range(table.rows)]
        if not np.allclose(rest, 0.0, atol=1e-9):
            terms = np.concatenate([terms, rest[:, :, None]], axis=2)
            names, cells = [*names, "(together)"], [[*row, ""] for row in cells]
        return Ledgers.of(self.classes_, prior, terms, names, cells)

    @property
    def schema_(self) -> dict[str, ColumnReport]:
        """For each column what it was taken for, and the evidence behind it."""
        reports: dict[str, ColumnReport] = {
            name: ColumnReport(name, "empty", "none", {}) for name in self._schema.names
        }
        for block, candidates in zip(
            self._schema.blocks, model.compute_evidence(self._schema, self._fitted_statistics()), strict=True
        ):
            for j, name in enumerate(block.names):
                rows = max(float(self.statistics_.n.sum()), 1.0)
                best = model.argmax_evidence(np.array([e[j] for _, e in candidates]))
                bits = {type(f).__name__: float(e[j]) / rows / np.log(2) for f, e in candidates}
                reports[name] = ColumnReport(name, block.kind, list(bits)[int(best)], bits)
        return reports

    @property
    def inclusion_probability_(self) -> Array:
        """For each column the probability that it depends on the class at all; for a text, that any token does."""
        return np.array(list(model.inclusion_probability(self._schema, self._fitted_statistics()).values()))

    @property
    def token_inclusion_(self) -> dict[str, dict[str, float]]:
        """For each column of texts, and each of its tokens, the probability that the token depends on the class."""
        return model.token_inclusion(self._schema, self._fitted_statistics())

    def leave_one_out(self, X: Any, y: Any) -> Array:
        """log p(c | x) of every learned row, from the model without that row: ``total - row``, no refit."""
        check_is_fitted(self, "statistics_")
        table = self._read(X, reset=False)
        return self._predict_left_out(table, encode_labels(y, self.classes_)[1])

    def _predict_left_out(self, table: Table, group: Array) -> Array:
        joint = leave_one_out(
            self._schema,
            self.statistics_,
            table,
            group,
            self.estimate,
            self._resolve_class_prior(),
            self.average,
        )
        return log_normalise(joint, self._log_prior())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _check_not_empty(table: Table) -> None:
    if not table.names:
        raise DataError(f"0 feature(s) (shape=({table.rows}, 0)) while a minimum of 1 is required: X has no columns.")
    if not table.rows:
        raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")
