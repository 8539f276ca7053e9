"""`NaiveBayes`: tables of mixed columns, each column with the family that explains it best."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy import ndarray as Array

from priory.calibration.answer_lines import split_answers
from priory.core.estimator_methods import optional_attribute
from priory.core.statistics import register_estimator
from priory.core.typing import Label
from priory.estimators.learned_classifier import CorrectedClassifier, find_classifier_fault
from priory.learning.table_rows import TableRows
from priory.model.ledger import Ledgers, check_unit
from priory.model.model_statistics import ClassPrior
from priory.model.schema import FamiliesLike, Schema, TextbookFamilies, ValuePriors
from priory.model.table_model import Model, argmax_evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from sklearn.utils import Tags

    from priory.learning.release import Domain
    from priory.model.probability_tables import ParameterCount, ProbabilityTables


@dataclass(frozen=True)
class ColumnReport:
    """The kind and family of a column, and the log evidence per row, in bits, of every candidate family."""

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


@register_estimator(required=("statistics_", "n_features_in_", "_schema"), find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False)
class NaiveBayes(CorrectedClassifier):
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
    alpha : float, optional
        Pseudo-counts added to each label or bin, the same for all columns; by default chosen by the evidence of each
        column.
    class_prior : "estimated", "uniform", a dict of class to probability, or one probability for each class in order
    new_columns : "learn", "ignore" or "error"
        What ``partial_fit`` and ``learn_one`` do with named columns that the model does not know yet. With "learn" and
        "ignore" a column that is absent there, or in ``forget``, is missing in all rows. ``predict`` has its own rule:
        an absent column is an error, and an unknown one a warning. ``predict_one`` takes rows as they come.
    calibrate : "loo" or False
        Correct naive Bayes by regressions, pairs of columns, boosted trees and a Gaussian of all numbers, as far as
        they predict rows left out better, and answer with no odds beyond n + 1 : 1 after n rows; or answer as naive
        Bayes does, where answers must be its arithmetic. With more than 64 classes columns are only weighed.
    memory : int, optional
        The number of rows that the model keeps a fair sample of, to derive corrections from whenever it has learned,
        forgotten or merged; 5,000 by default. With 0 it keeps none.
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
    learned_ : Learned
        The statistics with the columns and parameters that they are answered with.
    n_parameters_ : ParameterCount
        The number of parameters, and how many there were without the naive assumption.
    schema_ : dict of str to ColumnReport
        For each column its family, and the evidence of every candidate.
    corrections_ : Corrections
        The corrections in use, if there are any.
    corrections_version_ : str
        A name of the corrections in use; equal names are equal corrections.
    sample_changes_ : int
        The number of kept rows that came or went since the corrections were derived.
    stale_ : tuple of str
        Corrections that were lost because no rows are kept to derive them from.
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
    >>> table = [{"outlook": "sunny", "wind": 3.0}, {"outlook": "sunny", "wind": None}]
    >>> table += [{"outlook": "rain", "wind": 9.0}, {"outlook": "rain", "wind": 8.0}]
    >>> model = NaiveBayes().fit(table, ["yes", "yes", "no", "no"])
    >>> model.predict([{"outlook": "sunny", "wind": 4.0}]).tolist()
    ['yes']
    >>> model.forget(table[:2], ["yes", "yes"]).class_count_.tolist()  # as if the rows had never been learned
    [2.0]
    """

    _rows_class = TableRows

    families: FamiliesLike = "auto"
    _: KW_ONLY
    estimate: str = "predictive"
    alpha: float | None = None
    class_prior: ClassPrior = "estimated"
    new_columns: str = "learn"
    calibrate: Literal["loo", False] = "loo"
    memory: int | None = None
    refresh_after: float = 0.1

    # in model files: the columns, and the number of the first table's where later rows have brought more
    _schema: Schema = field(init=False)
    first_columns_: int = field(init=False)

    @classmethod
    def textbook(cls, m: float | Literal["laplace"] = 0, p: ValuePriors | None = None) -> Self:
        """Make textbook naive Bayes: fixed families, and no corrections.

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
        return cls(families, estimate=estimate, calibrate=False)

    def release(
        self, epsilon: float, *, domains: Mapping[str, Domain], classes: Sequence[Label], source: Random | None = None
    ) -> Self:
        """Make a differentially private copy: counts with discrete noise over declared domains.

        Whether any one row was learned changes the probability of every release by a factor of at most e^epsilon. The
        copy answers, learns and merges like other models, and cannot forget: its counts are not sums of rows any more.

        Parameters
        ----------
        epsilon : float
            The privacy budget of all columns together; 1 is customary, and less is more private.
        domains : dict of column to labels, or to bounds (low, high)
            The possible labels of each column, or the range of its numbers. They have to come from outside the rows.
        classes : sequence of labels
            The possible classes.
        source : random.Random, optional
            The source of randomness, to repeat an experiment; by default the operating system's, as privacy needs.

        Examples
        --------
        >>> rows = [{"age": 20 + i % 50, "city": "Ulm" if i % 3 else "Bonn"} for i in range(400)]
        >>> model = NaiveBayes().fit(rows, ["yes" if i % 3 else "no" for i in range(400)])
        >>> private = model.release(2, domains={"age": (0, 120), "city": ["Ulm", "Bonn"]}, classes=["yes", "no"])
        >>> private.released_
        (2.0,)
        """
        from priory.learning.release import release_counts  # few models are released

        made = release_counts(self._learned(), epsilon, domains, classes, source)
        twin = type(self)(**vars(made.rows.parameters)).adopt(made, finish=False)
        twin.__dict__.update({name: value for name, value in vars(self).items() if name in ("target_", "missing_")})
        return twin

    # -- answering -----------------------------------------------------------------------------------------------

    def explain(self, X: object, unit: str = "decibans") -> Ledgers:
        """Explain each row by an evidence ledger: the prior, one line for each column, and their sum, the log-odds.

        ``unit`` is the unit of display: "decibans", "nats", "bits", or "probability" for P(value | class) and factors.

        Of a corrected model each line is what that column did to this answer, compared to the average row; a line such
        as "age x income" is what two columns did together, beyond what each did by itself. "share of the base rate" is
        how far the pool of answers keeps to the class shares, "missing cells" what they leave open, and "limit of n
        rows" bounds the odds, because n rows do not justify more. Of a model that is only tempered, "prior (tempered)"
        is the class prior times its weight.
        """
        learned = self._learned()
        rows, table = learned.rows.read(X, "answer", learned.statistics)
        found, model = split_answers(learned.calibrated(), rows.read_cells(table)), learned.model()
        names, positions = model.schema.names, table.find_columns(model.schema.names)
        sources = [source if isinstance(source, str) else tuple(names[k] for k in source) for source in found.sources]
        # only lines of one column have a value
        values = [
            [*(table.get_cell(row, j) for j in positions), *("" for _ in sources[len(names) :])]
            for row in range(table.rows)
        ]
        return Ledgers.of(
            *(learned.classes, found.first, found.lines, sources, values, found.name),
            unit=check_unit(unit),
            corrections=learned.correction_names,
            smoothing=model.describe_smoothing(),
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        learned = self._core.state
        smoothing = "" if learned is None else learned.model().describe_smoothing()
        return super().__repr__(N_CHAR_MAX) + (f" smoothed by {smoothing}" if smoothing else "")

    @optional_attribute
    def tables_(self) -> ProbabilityTables:
        """P(class), and P(value | class) of every column, with the counts and the formula of each estimate."""
        from priory.model.probability_tables import tabulate_model

        return tabulate_model(self._learned().model())

    @optional_attribute
    def n_parameters_(self) -> ParameterCount:
        """The number of parameters, and how many there were without the naive assumption."""
        from priory.model.probability_tables import count_model_parameters

        return count_model_parameters(self._learned().model())

    @optional_attribute
    def schema_(self) -> dict[str, ColumnReport]:
        """Map each column to its kind and family, and the evidence of every candidate family."""
        model: Model = self._learned().model()
        rows = max(float(model.statistics.n.sum()), 1.0)
        reports = {name: ColumnReport(name, "empty", "none", {}) for name in model.schema.names}
        for block, candidates in zip(model.schema.blocks, model.compute_evidence(), strict=True):
            for j, name in enumerate(block.names):
                # compare candidates by log evidence; report it in bits a row
                best = argmax_evidence(np.array([evidence[j] for _, evidence in candidates]))
                bits = {type(f).__name__: float(evidence[j]) / rows / np.log(2) for f, evidence in candidates}
                virtual = candidates[int(best)][0].count_virtual_rows(j)
                reports[name] = ColumnReport(name, block.kind, list(bits)[int(best)], bits, virtual)
        return reports

    @property
    def column_kinds_(self) -> dict[str, str]:
        """Map each column to "number", "label", "text", or "empty" before its first value."""
        schema: Schema = self._find_attribute("_schema")
        kinds: dict[str, str] = dict.fromkeys(schema.names, "empty")
        return kinds | {name: block.kind for block in schema.blocks for name in block.names}

    @property
    def column_zones_(self) -> dict[str, str]:
        """Map each column of dates to its time zone, "" for none."""
        schema: Schema = self._find_attribute("_schema")
        return schema.find_zones()

    @property
    def column_formats_(self) -> dict[str, str]:
        """Map each column written in a notation such as 1.234,5 or 31/12/2024 to it."""
        schema: Schema = self._find_attribute("_schema")
        return dict(schema.formats)

    @optional_attribute
    def categories_(self) -> dict[str, Array]:
        """Map each column of labels to the labels learned."""
        learned = self._learned()
        rows: TableRows = learned.rows  # type: ignore[assignment]
        return rows.list_categories(learned.statistics)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
