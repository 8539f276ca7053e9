"""The interface `RowKind`, a frozen value: everything in which tables, texts and arrays differ.

Before data, a `RowKind` has parameters alone; ``read`` adds the columns. ``count`` returns statistics, and every answer
is a function of both (``model``).
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.errors import DataError, NotLearnedError, PrioryWarning
from priory.model import cells as kept_cells
from priory.model.cells import Cells, RowSample, hash_labelled_rows
from priory.model.model_statistics import ModelStatistics
from priory.model.open_model import OpenModel

if TYPE_CHECKING:
    from priory.calibration.calibrator import Calibrator
    from priory.model.column_profile import Profiles
    from priory.text.tokenizer import Tokenizer

Purpose = Literal["fit", "learn", "forget", "answer"]


class Batch(Protocol):
    """Rows that were read."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def take_rows(self, rows: Array) -> Self:
        """Select rows by position."""


BatchT = TypeVar("BatchT", bound=Batch)


class Parameters(SimpleNamespace):
    """The declared parameters of an estimator."""

    def has_class_prior(self) -> bool:
        """Whether class probabilities are declared, which also declare the classes."""
        prior = getattr(self, "class_prior", getattr(self, "priors", None))
        return prior is not None and not isinstance(prior, str)


class RowKind(ABC, Generic[BatchT]):
    """How rows are read, counted and scored: the declared parameters and the columns."""

    parameters: Parameters
    calibrates: ClassVar[bool] = False  # whether such models can have corrections

    @abstractmethod
    def __init__(self, parameters: Parameters) -> None: ...

    # -- the columns ---------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """The columns as attributes of an estimator, by name."""

    @abstractmethod
    def with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        """A copy with these columns."""

    def with_parameters(self, declared: Self) -> Self:
        """A copy with the parameters of ``declared``."""
        same = self.parameters is declared.parameters
        return self if same else declared.with_attributes(self.attributes)

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of columns; 0 before the first rows."""

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """List the columns whose kinds depend on all rows; ``strings`` hold no numbers, ``dates`` are among them."""
        return []

    def find_zones(self) -> dict[str, str]:
        """Map each column of dates to its time zone, "" for none."""
        return {}

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> Self:
        """A copy for the named columns; ``profiles`` give the kinds of the open ones."""
        return self

    # -- reading -------------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> None:
        """Raise an error for invalid parameters."""

    @abstractmethod
    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, BatchT]:
        """Read and check users' rows; return a copy with any new columns, and the batch."""

    @abstractmethod
    def wrap_row(self, x: Any, learns: bool) -> object:
        """Wrap one row for ``read``; ``learns`` if it is learned or forgotten, not answered."""

    def list_rows(self, X: object) -> list[Any] | None:
        """List the rows of a small batch as `learn_one` takes them; None if they have to be read together."""
        return None

    @abstractmethod
    def read_cells(self, batch: BatchT) -> Any:
        """Convert a batch to the cells that the model scores."""

    def describe_cell(self, batch: BatchT, row: int, error: NotLearnedError) -> str:
        """Describe the cell of a row that was not learned."""
        return error.subject or "it"

    # -- learning ------------------------------------------------------------------------------------------------

    @abstractmethod
    def count(self, batch: BatchT, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        """Count a batch; with corrections, the statistics include a uniform sample of the rows."""

    def place(self, statistics: ModelStatistics, columns: Self) -> ModelStatistics:
        """Rearrange statistics of ``columns`` to the columns of this value."""
        return statistics

    def join(self, other: Self) -> Self:
        """The union of the columns; raises if their statistics cannot be added."""
        return self

    def settle(self, statistics: ModelStatistics) -> tuple[Self, ModelStatistics]:
        """Drop columns that have lost their last cell."""
        return self, statistics

    def prune(self, statistics: ModelStatistics) -> ModelStatistics:
        """Reduce a sum of parts to the declared limits."""
        return statistics

    def check_learned(self, statistics: ModelStatistics) -> None:
        """Raise an error or warn if ``fit`` has learned too little."""

    # -- answering -----------------------------------------------------------------------------------------------

    @abstractmethod
    def model(self, statistics: ModelStatistics) -> Any:
        """The model: log_prior() and log_joint(cells), and what calibration needs, if it is calibrated."""

    def answer(self, learned: Any, cells: Sequence[Cells]) -> Array:
        """(rows, classes): log p(c | x) after all corrections, of a `Learned` with these rows."""
        return np.asarray(learned.calibrated().log_probabilities(cells))

    def open(self, statistics: ModelStatistics) -> OpenModel[Any] | None:
        """A mutable model for single rows; None if one row would cost as much as counting all rows."""
        return None

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        """Describe why statistics do not fit these columns and parameters; None if they do."""
        return None

    # -- the sample that corrections are derived from ------------------------------------------------------------

    @property
    def column_names(self) -> Sequence[Sequence[str]]:
        """The names of the columns of each block of cells."""
        raise NotImplementedError

    def keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        """Convert cells to the form stored in a sample: texts become bags of tokens."""
        return list(cells)

    def calibrator(self) -> Calibrator:
        """The fitter of corrections, as declared."""
        raise NotImplementedError

    @property
    def memory(self) -> int:
        """The number of rows kept in the sample."""
        declared = self.parameters.memory
        return 0 if not self.is_calibrated else self.usual_memory if declared is None else declared

    @property
    def usual_memory(self) -> int:
        """The number of rows kept if it is not declared."""
        return kept_cells.DEFAULT_MEMORY

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """The tokenizers of the texts among the columns."""
        return []

    @property
    def is_calibrated(self) -> bool:
        """Whether answers are corrected, if there are rows to derive corrections from."""
        return self.calibrates and bool(self.parameters.calibrate)

    def hash_rows(self, cells: Sequence[Cells], classes: Array, group: Array) -> Array:
        """(rows,): the hash of each row and its class, as in a sample."""
        return hash_labelled_rows(self.column_names, cells, classes, group)

    def sample(
        self, cells: Sequence[Cells], classes: Array, group: Array, weight: Array | None, memory: int
    ) -> tuple[RowSample, Array]:
        """A uniform sample of at most ``memory`` rows, and their positions in the batch."""
        return RowSample.of(self.column_names, cells, classes, group, weight, memory, self.keep_cells)


def check_calibration(parameters: Parameters) -> None:
    """Raise an error for invalid parameters of corrections."""
    if parameters.calibrate not in ("loo", False):
        raise DataError(f"calibrate is {parameters.calibrate!r}; use 'loo' or False.")
    if parameters.memory is not None and not 0 <= parameters.memory < 1 << 31:
        raise DataError(f"memory is {parameters.memory!r}; use a number of rows from 0, or None.")
    if not parameters.refresh_after > 0:
        raise DataError(f"refresh_after is {parameters.refresh_after!r}; use a share of the rows above 0.")


def warn_user(message: str) -> None:
    """Warn at the line that called this package."""
    # walk up to the first frame outside the package
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("priory."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, PrioryWarning, stacklevel=level)
