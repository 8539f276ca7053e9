"""`NaiveBayes`: tables of mixed columns, each column with the family that explains it best."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from priory.bag_of_words.text_model import is_valid_alpha
from priory.bag_of_words.tokenizer import Tokenizer
from priory.calibration.smoothing_search import choose_smoothing
from priory.core.atomic_state import read_state
from priory.core.input_guard import name_cells
from priory.core.logspace import log_normalise
from priory.core.optional_attribute import optional_attribute
from priory.core.registration import count_columns, list_record_types, register_estimator
from priory.core.sample_weight import MAX_SAMPLE_WEIGHT
from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.errors import DataError, KindError, NotLearnedError, PrioryWarning
from priory.estimators.labels import sort_labels
from priory.estimators.scikit_learn import check_is_fitted
from priory.estimators.self_calibrating import SelfCalibratingClassifier
from priory.families.base import ESTIMATES
from priory.models.cells import Cells
from priory.models.class_prior import ClassPrior, ClassWeight, check_class_weight, resolve_class_prior
from priory.models.date_parts import drop_empty_parts, join_date_names
from priory.models.explanation import Ledgers, check_unit
from priory.models.family_choice import argmax_evidence
from priory.models.known_dates import drop_open_parts, read_known_table, split_row
from priory.models.model_statistics import (
    ModelStatistics,
    make_empty_statistics,
    observe_cells,
    rearrange_blocks,
)
from priory.models.naive_bayes import Model
from priory.models.open_table import OpenTable
from priory.models.schema import ColumnBlock, FamiliesLike, Schema
from priory.models.table import Table
from priory.models.table_reading import read_table
from priory.models.textbook_families import TextbookFamilies, ValuePriors

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from priory.calibration.calibrator import Calibrator
    from priory.models.probability_tables import ParameterCount, ProbabilityTables

# What "auto" tries: beyond these limits it is tried only where it is asked for by name.
ROWS_TO_CHOOSE_ALPHA = 100


@dataclass(frozen=True)
class ColumnReport:
    """What a column was taken for, and the log evidence per row, in bits, of every candidate family."""

    name: str
    kind: str
    family: str
    bits: dict[str, float]
    virtual_rows: float | None = None  # of each value, by which its counts are smoothed

    def __str__(self) -> str:
        others = ", ".join(f"{name} {b:.2f}" for name, b in self.bits.items() if name != self.family)
        best = f" {self.bits[self.family]:.2f} bits a row" if self.family in self.bits else ""
        smoothing = f", {self.virtual_rows:g} virtual rows of each value" if self.virtual_rows else ""
        return f"{self.name}: {self.family}{best}{smoothing}" + (f" ({others})" if others else "")


@register_estimator(required=("statistics_", "n_features_in_", "_schema"))
class NaiveBayes(SelfCalibratingClassifier[Table]):
    """Naive Bayes for tables of mixed columns.

    Takes a pandas, polars or pyarrow table, an array, or a list of dicts, with numbers, labels, booleans, dates and
    texts side by side. Of dates the hour, the weekday, the month and the day are learned, as columns of their own such
    as "when (weekday)", in the time zone of the first dates learned: rows to be answered are converted to it. Columns
    are found by name, in any order. A missing cell contributes nothing.

    Parameters
    ----------
    families : "auto", a family, a dict of column to family, or TextbookFamilies
        A family is a name ("gaussian"), a class (`Gaussian`, its prior taken from the data) or an instance
        (`Gaussian(location=0.0)`, a declared prior). "auto" chooses by evidence, column by column.
    estimate : "predictive", "mean", "map" or "ml"
        Integrate the parameters out, or use a point estimate of them.
    average : bool
        Average over all 2^d sets of columns instead of using them all: each column is weighted by the probability that
        it depends on the class. In a column of texts this is done for every token.
    alpha : float or "loo", optional
        Pseudo-counts added to each label or bin, the same for all columns; by default chosen by the evidence of each
        column. "loo" lets ``fit`` choose the value (``alpha_``) with the smallest leave-one-out log loss on at most 100
        rows; it then stays fixed until the next ``fit``.
    class_prior : "estimated", "uniform", a dict of class to probability, or one probability for each class in order
    class_weight : "balanced" or a dict of class to weight, optional
        How much the rows of a class count: the weights multiply the estimated class prior, and "balanced" makes all
        classes equally probable. Classes that are not named have the weight 1.
    missing : "ignore" or "error"
    new_columns : "learn", "ignore" or "error"
        What ``partial_fit`` and ``learn_one`` do with named columns that the model does not know yet. With "learn" and
        "ignore" a column that is absent there, or in ``forget``, is missing in all rows. ``predict`` has its own rule:
        an absent column is an error, and an unknown one a warning. ``predict_one`` takes rows as they come.
    calibrate : "loo" or False
        Correct the probabilities by the model's answers to rows left out, and answer with no odds beyond n + 1 : 1
        after n rows; or leave them as naive Bayes has them.
    refine : "auto", True or False
        Correct naive Bayes by a regression centred on it, fitted to the rows that the model keeps, or not at all. With
        more than 64 classes each column is weighed as a whole, and nothing else is corrected.
    structure : "auto" or "naive"
        "naive": columns are weighed one by one. "auto" also weighs pairs and triples of columns, and all numbers
        together, as far as that predicts rows left out better.
    memory : int, optional
        The number of rows that the model keeps a fair sample of, to derive corrections from whenever it has learned,
        forgotten or merged; 5,000 by default (50,000 if ``refine`` is true). With 0 it keeps none.
    refresh_after : float
        Derive the corrections anew when ``partial_fit`` has changed this share of the kept rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    class_count_ : ndarray
        The weight of the rows learned of each class.
    class_prior_ : ndarray
        The probability of each class before a row is read.
    tables_ : ProbabilityTables
        P(class), and P(value | class) of every column, with the counts and the formula of each estimate.
    statistics_ : ModelStatistics
        Everything that was learned: it adds, subtracts and scales.
    n_parameters_ : ParameterCount
        The number of parameters, and how many there were without the naive assumption.
    schema_ : dict of str to ColumnReport
        For each column its family, and the evidence of every candidate.
    inclusion_probability_ : ndarray
        For each column the probability that it depends on the class.
    token_inclusion_ : dict
        For each column of texts and each of its tokens, the probability that the token depends on the class.
    corrections_ : Corrections
        The corrections in use, if there are any.
    corrections_version_ : str
        A name of the corrections in use; equal names are equal corrections.
    sample_changes_ : int
        The number of kept rows that came or went since the corrections were derived.
    stale_ : tuple of str
        Corrections that were lost because no rows are kept to derive them from.
    alpha_ : float
        The pseudo-count that ``alpha="loo"`` chose.
    clock_ : float
        The product of all decays so far.
    n_features_in_, feature_names_in_
        The number of columns, and their names if they have any.

    References
    ----------
    T. Mitchell, *Machine Learning*, McGraw-Hill 1997, chapter 6.
    G. Webb, J. Boughton, Z. Wang, "Not so naive Bayes: aggregating one-dependence estimators", Machine Learning 58
    (2005), 5-24.

    Examples
    --------
    >>> table = [{"outlook": "sunny", "wind": 3.0}, {"outlook": "rain", "wind": 9.0}, {"outlook": "rain", "wind": None}]
    >>> model = NaiveBayes().fit(table, ["yes", "no", "no"])
    >>> model.predict([{"outlook": "sunny", "wind": 4.0}]).tolist()
    ['yes']
    >>> model.forget(table[:1], ["yes"]).class_count_.tolist()  # as if the row had never been learned
    [2.0]
    """

    alpha_: float
    first_columns_: int  # how many columns the first table had, where later rows have brought more
    _schema: Schema
    _requires_all_classes = False

    def __init__(
        self,
        families: FamiliesLike = "auto",
        *,
        estimate: str = "predictive",
        average: bool = False,
        alpha: float | Literal["loo"] | None = None,
        class_prior: ClassPrior = "estimated",
        class_weight: ClassWeight | None = None,
        missing: str = "ignore",
        new_columns: str = "learn",
        calibrate: Literal["loo", False] = "loo",
        refine: bool | Literal["auto"] = "auto",
        structure: str = "auto",
        memory: int | None = None,
        refresh_after: float = 0.1,
    ) -> None:
        self.families = families
        self.estimate = estimate
        self.average = average
        self.alpha = alpha
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.missing = missing
        self.new_columns = new_columns
        self.calibrate = calibrate
        self.refine = refine
        self.structure = structure
        self.memory = memory
        self.refresh_after = refresh_after

    @classmethod
    def textbook(cls, m: float | Literal["laplace"] = 0, p: ValuePriors | None = None) -> Self:
        """Naive Bayes as the book has it: nothing is chosen by the data, and nothing is corrected.

        Labels have relative frequencies or the m-estimate ``(n_c + m p) / (n + m)``, numbers a Gaussian with the mean
        and the variance (divided by n) of their class.

        Parameters
        ----------
        m : float or "laplace"
            The number of virtual examples of each column; "laplace" is one for each value.
        p : dict of column to dict of value to probability, optional
            The prior probability of each value; by default all values of a column have the same.

        Examples
        --------
        >>> days = [{"wind": "weak"}, {"wind": "weak"}, {"wind": "strong"}, {"wind": "strong"}]
        >>> model = NaiveBayes.textbook().fit(days, ["yes", "yes", "yes", "no"])
        >>> print(model.explain([{"wind": "strong"}], unit="probability"))
        no against yes
        p               no     yes  odds ×
        prior         0.25    0.75  0.3333
        wind = strong    1  0.3333       3
        product       0.25    0.25       1
        P(class | row) 0.5     0.5
        """
        families = TextbookFamilies(m, p)
        estimate = "ml" if m == 0 else "mean"
        return cls(families, estimate=estimate, calibrate=False, refine=False, structure="naive")

    def _is_consistent(self) -> bool:
        """Whether there is a record for every candidate of every block of columns, of the class its family makes."""
        schema, parts = self._schema, self.statistics_.parts
        # Texts first: no file can allocate more buckets than it holds counts for.
        if len(schema.blocks) != len(parts) or not all(map(_has_possible_texts, schema.blocks, parts)):
            return False
        empty = make_empty_statistics(schema, self.statistics_.classes[:1])
        widths = [len(block.names) for block in schema.blocks]
        return (
            len(schema.names) == self.n_features_in_
            and 0 < vars(self).get("first_columns_", 1) <= len(schema.names)
            and (not hasattr(self, "feature_names_in_") or tuple(self.feature_names_in_) == schema.names)
            and list_record_types(empty.parts) == list_record_types(parts)
            and all(count_columns(r, d) == d for records, d in zip(parts, widths, strict=True) for r in records)
            and (self.statistics_.sample is None or schema.can_keep(self.statistics_.sample.blocks))
            and self._has_fitting_corrections()
        )

    # -- what was declared ---------------------------------------------------------------------------------------

    def _model(self, statistics: ModelStatistics | None = None) -> Model:
        learned = self._fitted_statistics() if statistics is None else statistics
        prior = resolve_class_prior(self.class_prior, self.class_weight, learned.classes)
        return Model(self._schema, learned, self.estimate, prior, self.average)

    def _calibrator(self) -> Calibrator:
        """Corrections of all rows that the model keeps."""
        from priory.calibration.calibrator import Calibrator  # which answers do without
        from priory.calibration.fitting import FitPlan

        return Calibrator(sys.maxsize, FitPlan(refine=bool(self.refine), together=self.structure == "auto"))

    def _effective_alpha(self) -> float | None:
        """The pseudo-count that the schema is declared with."""
        return getattr(self, "alpha_", 1.0) if self.alpha == "loo" else self.alpha

    def _check_parameters(self) -> None:
        if self.estimate not in ESTIMATES:
            raise DataError(f"estimate is {self.estimate!r}; use one of {', '.join(ESTIMATES)}.")
        if self.new_columns not in ("learn", "ignore", "error"):
            raise DataError(f"new_columns is {self.new_columns!r}; use 'learn', 'ignore' or 'error'.")
        if self.missing not in ("ignore", "error"):
            raise DataError(f"missing is {self.missing!r}; use 'ignore' or 'error'.")
        if isinstance(self.alpha, str) and self.alpha != "loo":
            raise DataError(f"alpha is {self.alpha!r}; use a number from 0, 'loo' or None.")
        if isinstance(self.alpha, (int, float)) and not is_valid_alpha(self.alpha):
            raise DataError(f"alpha is {self.alpha!r}; it must be a number from 0 to {MAX_SAMPLE_WEIGHT:g}.")
        if self.refine not in ("auto", True, False):
            raise DataError(f"refine is {self.refine!r}; use 'auto', True or False.")
        if self.structure not in ("auto", "naive"):
            raise DataError(f"structure is {self.structure!r}; use 'auto' or 'naive'.")
        if isinstance(self.class_prior, str) and self.class_prior not in ("estimated", "uniform"):
            raise DataError(f"class_prior is {self.class_prior!r}; use 'estimated', 'uniform', or probabilities.")
        check_class_weight(self.class_weight, self.class_prior)

    # -- learning ------------------------------------------------------------------------------------------------

    def _read(self, X: object, reset: bool) -> Table:
        self._check_parameters()
        table = read_table(X) if reset else drop_open_parts(read_known_table(X, self._schema), self._schema)
        if reset:
            _check_not_empty(table)
        elif new := self._list_new_columns(table):
            filled = dict(zip(table.names, table.find_filled_columns(), strict=True))
            extra = [name for name in new if filled[name]]
            if extra:
                warnings.warn(f"ignoring columns the model does not know: {extra[:10]}", PrioryWarning, stacklevel=3)
        self._check_columns(table, reset)
        if not reset and "statistics_" in vars(self):
            self._check_label_types(table)
        table.check_finite()
        if self.missing == "error":
            table.check_no_missing()
        if reset:
            self._schema = Schema.of(table, self.families, self._effective_alpha())
        return table

    def _read_more(self, X: object, learns: bool) -> Table:
        """More rows: a column that they lack is missing in all of them, and a new one is learned as declared."""
        self._check_parameters()
        table = read_known_table(X, self._schema, is_counted=True)
        if learns:
            self._rename_columns(lambda names: join_date_names(names, table.names))
        if not learns and self.new_columns != "ignore":
            self._check_columns_were_learned(table)
        if self.new_columns == "error" or not (table.has_names and hasattr(self, "feature_names_in_")):
            if learns:
                self._check_no_new_columns(table)
            return self._read(table, reset=False)
        if self.new_columns == "learn" and learns:
            self._add_columns(table)
        return self._read(table.add_missing_columns(self._schema.names), reset=False)

    def _check_no_new_columns(self, table: Table) -> None:
        new = self._list_new_columns(table)
        if new:
            raise DataError(f"column {new[0]!r} is new; set new_columns to 'learn' or 'ignore', or leave it out.")

    def _check_columns_were_learned(self, table: Table) -> None:
        """Raise an error if a row to forget has a cell in a column that no row has brought yet."""
        for name in self._list_new_columns(table):
            place = table.names.index(name)
            row = next((row for row in range(table.rows) if table.get_cell(row, place) is not None), None)
            if row is not None:
                value = table.get_cell(row, place)
                raise NotLearnedError(
                    f"row {row}: column {name!r}, {value!r}, was never learned; forget only rows that were learned, or "
                    "leave the column out; the model is unchanged.",
                    row=row,
                )

    def _list_new_columns(self, table: Table) -> list[str]:
        if not (table.has_names and hasattr(self, "feature_names_in_")):
            return []
        known = set(self._schema.names)
        return [name for name in table.names if name not in known]

    def _add_columns(self, table: Table) -> None:
        """Know the new columns of a table."""
        new = self._list_new_columns(table)
        if not new:
            return
        if table.rows > 1:  # of a stream of single rows this is expected
            warnings.warn(f"learning columns the model did not know: {new[:10]}", PrioryWarning, stacklevel=6)
        self.__dict__.setdefault("first_columns_", len(self._schema.names))
        self._know_columns((*self._schema.names, *new))

    def _rename_columns(self, rename: Callable[[Sequence[str]], tuple[str, ...]]) -> None:
        """Know columns of dates by other parts, in the same places."""
        names, first = self._schema.names, vars(self).get("first_columns_")
        if (renamed := rename(names)) != names:
            if first is not None:
                self.first_columns_ = len(rename(names[:first]))
            self._know_columns(renamed)

    def _know_columns(self, names: tuple[str, ...]) -> None:
        self._schema = replace(self._schema, names=names)
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)

    def _drop_new_columns(self) -> None:
        """Columns that rows brought leave with their last cell; those of the first table stay."""
        first, filled = vars(self).get("first_columns_"), {n for block in self._schema.blocks for n in block.names}
        if first is None:
            return
        names = self._schema.names
        kept = (*names[:first], *(name for name in names[first:] if name in filled))
        if len(kept) == first:
            del self.__dict__["first_columns_"]
        if kept != names:
            self._know_columns(kept)

    def _check_columns(self, table: Table, reset: bool) -> None:
        """Remember the columns, or compare with them: by number where the table has no names."""
        if reset:
            self.n_features_in_ = len(table.names)
            for name in ("feature_names_in_", "first_columns_"):
                self.__dict__.pop(name, None)
            if table.has_names:
                self.feature_names_in_ = np.array(table.names, dtype=object)
        elif not table.has_names and len(table.names) != self.n_features_in_:
            raise DataError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )

    def _check_label_types(self, table: Table) -> None:
        """Raise an error if a column of strings holds numbers now, or the other way round."""
        kinds, positions = table.column_kinds(), table.find_columns(self._schema.names)
        places = dict(zip(self._schema.names, positions, strict=True))
        for name, learned in self.categories_.items():
            found, is_text = kinds[table.names[places[name]]], learned.dtype.kind in "OUS"
            if len(learned) and found == ("number" if is_text else "label"):
                row = next((i for i in range(table.rows) if table.get_cell(i, places[name]) is not None), None)
                if row is not None:
                    value = table.get_cell(row, places[name])
                    expected = "labels such as" if is_text else "numbers such as"
                    raise KindError(
                        f"row {row}, column {name!r} holds {value!r}; the model has learned {expected} "
                        f"{learned.tolist()[0]!r} there: give the same type."
                    )

    def _read_cells(self, table: Table) -> list[Cells]:
        return self._schema.read_cells(drop_open_parts(table, self._schema))

    def _column_names(self) -> list[tuple[str, ...]]:
        return [block.names for block in self._schema.blocks]

    def _wrap_row(self, x: Any, learns: bool) -> list[object]:
        """A dict as a table of one row; where it is not learned, with the columns of the model."""
        if not isinstance(x, Mapping):
            raise KindError(f"x is a {type(x).__name__}; give one row as a dict of column to cell.")
        if hasattr(self, "statistics_"):
            row = split_row(name_cells(x), self._schema, learns)
            takes_new = learns and self.new_columns != "ignore"
            return [row if takes_new else {name: row.get(name) for name in self._schema.names}]
        declared = self.families if isinstance(self.families, Mapping) else {}
        row = name_cells(x)
        return [{**row, **{name: None for name in declared if name not in row}}]

    def _open_model(self) -> OpenTable | None:
        model = self._model()
        return OpenTable(model, self.new_columns, self.missing == "error") if OpenTable.can_open(model) else None

    def _list_tokenizers(self) -> list[Tokenizer]:
        texts = [block.text_family() for block in self._schema.blocks if block.kind == "text"]
        return [family.build_model().vocabulary.tokenizer for family in texts]

    def _keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        return [block.keep_cells(x) for block, x in zip(self._schema.blocks, cells, strict=False)]

    def _resolve_classes(self, classes: ArrayLike | None, is_first_call: bool) -> Array | None:
        if classes is not None:
            given = sort_labels(classes)
            return given if is_first_call else np.union1d(self.classes_, given)
        return None if is_first_call else self.classes_

    def _observe(self, table: Table, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        grown = self._schema.add_columns(table, self.families, self._effective_alpha())
        if hasattr(self, "statistics_"):
            self.statistics_ = rearrange_blocks(self.statistics_, self._schema, grown)
        self._schema = grown
        return observe_cells(self._schema, self._read_cells(table), classes, group, weight)

    def _set_statistics(self, statistics: ModelStatistics) -> None:
        """Columns, too, are empty again when their last cell is forgotten."""
        filled = Model(self._schema, statistics).find_filled_columns()
        known = self._schema.keep_columns(filled)
        left = rearrange_blocks(statistics, self._schema, known)
        self._schema = known
        self._drop_new_columns()
        declared = self.families if isinstance(self.families, Mapping) else ()
        self._rename_columns(lambda names: drop_empty_parts(names, filled, declared))
        super()._set_statistics(left)

    def _finish_fit(self, table: Table, group: Array, weight: Array | None) -> None:
        self._check_learned()
        if self.alpha == "loo":
            self._choose_alpha(table, group, weight)
        super()._finish_fit(table, group, weight)

    def _check_learned(self) -> None:
        """Raise an error if no cell was learned, and warn of columns and classes that say little."""
        filled = self._model().find_filled_columns()
        empty = [name for name in self._schema.names if name not in filled]
        if not filled:
            raise DataError("every cell of X is missing; there is nothing to learn from.")
        if empty:
            warnings.warn(f"columns without a single value say nothing: {empty[:10]}", PrioryWarning, stacklevel=5)
        if (self.class_count_ <= 1).all():
            warnings.warn("no class has two rows: how far each spreads is guessed", PrioryWarning, stacklevel=5)

    def _choose_alpha(self, table: Table, group: Array, weight: Array | None) -> None:
        """By leaving rows out: the statistics are the same under any prior, only the schema differs."""
        if weight is not None:
            raise DataError("alpha='loo' leaves out rows of weight one; omit sample_weight, or give alpha a number.")
        rows = space_evenly(table.rows, ROWS_TO_CHOOSE_ALPHA)
        some, own = table.take_rows(rows), group[rows]

        def predict_left_out(alpha: float) -> Array:
            model = replace(self._model(), schema=Schema.of(table, self.families, alpha))
            return log_normalise(model.leave_one_out(model.schema.read_cells(some), own), model.log_prior())

        self.alpha_ = choose_smoothing(predict_left_out, own)
        self._schema = Schema.of(table, self.families, self.alpha_)

    def _check_mergeable(self, other: Self) -> None:
        if isinstance(other, NaiveBayes) and hasattr(other, "_schema"):
            self._rename_columns(lambda names: join_date_names(names, other._schema.names))
            other._rename_columns(lambda names: join_date_names(names, self._schema.names))
        super()._check_mergeable(other)
        mine, theirs = self._effective_alpha(), other._effective_alpha()
        if mine != theirs:
            raise DataError(f"the models have different alphas ({mine} and {theirs}); declare one to merge them.")
        if difference := self._schema.describe_difference(other._schema):
            raise DataError(f"the models differ: {difference}; merge models of the same columns and families.")

    def _align_statistics(self, other: Self) -> ModelStatistics:
        """Over the columns that hold something in either model."""
        joined = self._schema.join(other._schema)
        self.statistics_ = rearrange_blocks(self.statistics_, self._schema, joined)
        self._schema = joined
        return rearrange_blocks(super()._align_statistics(other), other._schema, joined)

    def _describe_unlearned_cell(self, table: Table, row: int, error: NotLearnedError) -> str:
        if not error.path:
            return super()._describe_unlearned_cell(table, row, error)
        block = self._schema.blocks[error.path[0]]
        within = error.path[2:] or error.index[1:]  # labels have a record for each column, numbers one for all
        name = block.names[within[0] if within and block.kind != "text" else 0]
        error.column = name
        value = table.get_cell(row, table.find_columns(self._schema.names)[self._schema.names.index(name)])
        return f"column {name!r}, {error.subject or repr(value)},"

    # -- answering -----------------------------------------------------------------------------------------------

    @read_state
    def explain(self, X: object, unit: str = "decibans") -> Ledgers:
        """The evidence ledger of each row: the prior, one line for each column, and their sum, the log-odds.

        ``unit`` is what it is shown in: "decibans", "nats", "bits", or "probability" for P(value | class) and factors.

        Each line is what the column counts for after tempering, which gives each part of the model a weight;
        "prior (tempered)" is the class prior times its weight, and "(together)" is what corrections that look at
        several columns together add. "limit of n rows" is what the answer lacks because n rows cannot make anybody
        surer.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        cells = self._read_cells(table)
        split = self._calibrated().split_evidence(cells)
        terms = self._model().log_likelihood_terms(cells) * split.weights[:, None, 1:]  # (rows, classes, columns)
        names, positions = list(self._schema.names), table.find_columns(self._schema.names)
        lines, added = split.finish_lines(terms, slice(None))
        values = [[*(table.get_cell(row, j) for j in positions), *("" for _ in added)] for row in range(table.rows)]
        return Ledgers.of(
            *(self.classes_, split.prior, lines, [*names, *added], values, split.prior_name),
            unit=check_unit(unit),
            corrections=self._name_corrections(),
            smoothing=self._model().describe_smoothing(),
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        smoothing = self._model().describe_smoothing() if "statistics_" in vars(self) else ""
        return super().__repr__(N_CHAR_MAX) + (f" smoothed by {smoothing}" if smoothing else "")

    @property
    @optional_attribute
    def tables_(self) -> ProbabilityTables:
        """P(class), and P(value | class) of every column, with the counts and the formula of each estimate."""
        from priory.models.probability_tables import tabulate_model

        return tabulate_model(self._model())

    @property
    @optional_attribute
    def n_parameters_(self) -> ParameterCount:
        """The number of parameters, and how many there were without the naive assumption."""
        from priory.models.probability_tables import count_model_parameters

        return count_model_parameters(self._model())

    @property
    @optional_attribute
    def schema_(self) -> dict[str, ColumnReport]:
        """For each column what it was taken for, and the evidence of every candidate family."""
        model = self._model()
        rows = max(float(model.statistics.n.sum()), 1.0)
        reports = {name: ColumnReport(name, "empty", "none", {}) for name in self._schema.names}
        for block, candidates in zip(self._schema.blocks, model.compute_evidence(), strict=True):
            for j, name in enumerate(block.names):
                best = argmax_evidence(np.array([evidence[j] for _, evidence in candidates]))
                bits = {type(f).__name__: float(evidence[j]) / rows / np.log(2) for f, evidence in candidates}
                virtual = candidates[int(best)][0].count_virtual_rows(j)
                reports[name] = ColumnReport(name, block.kind, list(bits)[int(best)], bits, virtual)
        return reports

    @property
    def column_kinds_(self) -> dict[str, str]:
        """For each column "number", "label" or "text", or "empty" as long as it has had no value."""
        kinds: dict[str, str] = dict.fromkeys(self._schema.names, "empty")
        return kinds | {name: block.kind for block in self._schema.blocks for name in block.names}

    @property
    def column_zones_(self) -> dict[str, str]:
        """For each column of dates the time zone that they are learned in, "" if they have none."""
        return self._schema.find_zones()

    @property
    def categories_(self) -> dict[str, Array]:
        """For each column of labels the labels that have been learned."""
        return {
            name: counts.values
            for block, records in zip(self._schema.blocks, self._fitted_statistics().parts, strict=True)
            if block.kind == "label"
            for name, counts in zip(block.names, records[0], strict=True)
        }

    @property
    @optional_attribute
    def inclusion_probability_(self) -> Array:
        """For each column the probability that it depends on the class; for a text, that any of its tokens does."""
        return np.array(list(self._model().inclusion_probability().values()))

    @property
    @optional_attribute
    def token_inclusion_(self) -> dict[str, dict[str, float]]:
        """For each column of texts, and each of its tokens, the probability that the token depends on the class."""
        return self._model().token_inclusion()

    def __sklearn_tags__(self) -> Tags:
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


def _has_possible_texts(block: ColumnBlock, records: tuple[object, ...]) -> bool:
    """Whether the record of a column of texts can be that of its text model."""
    return block.kind != "text" or (len(records) == 1 and block.text_family().find_record_fault(records[0]) is None)
