"""The interface of rows: everything in which tables, texts and arrays differ. A `RowKind` is a frozen value.

A declared `RowKind` has parameters alone; ``read`` adds the columns. What was learned is the statistics that ``count``
returns, and every answer is a function of both (``model``).
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError, PrioryWarning
from priory.model.cells import Cells
from priory.model.model_statistics import ModelStatistics
from priory.model.open_model import OpenModel
from priory.model.row_sample import RowSample, choose_memory

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
        """Some of the rows."""


BatchT = TypeVar("BatchT", bound=Batch)


class Parameters(SimpleNamespace):
    """The parameters of an estimator, as they were declared."""

    def has_class_prior(self) -> bool:
        """Whether probabilities of classes are declared, and with them the classes."""
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
        """The same parameters with these columns."""

    def with_parameters(self, declared: Self) -> Self:
        """The same columns with the parameters of ``declared``."""
        same = self.parameters is declared.parameters
        return self if same else declared.with_attributes(self.attributes)

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of columns; 0 as long as nothing was read."""

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """The columns whose kinds only all rows can decide; ``strings`` do not hold numbers, and some are ``dates``."""
        return []

    def find_zones(self) -> dict[str, str]:
        """For each column of dates the time zone that they are learned in, "" if they have none."""
        return {}

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> Self:
        """The same for columns of these names, of kinds that ``profiles`` tell of the open ones."""
        return self

    # -- reading -------------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> None:
        """Raise an error for parameters that cannot be."""

    @abstractmethod
    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, BatchT]:
        """Rows as users give them, checked against what was learned; the result has their new columns."""

    @abstractmethod
    def wrap_row(self, x: Any, learns: bool) -> object:
        """One row as ``read`` takes it; ``learns`` if the row is learned or forgotten rather than answered."""

    def list_rows(self, batch: BatchT) -> list[Any]:
        """The rows one by one, as a model that is opened for single rows takes them."""
        raise NotImplementedError

    @abstractmethod
    def read_cells(self, batch: BatchT) -> Any:
        """Rows as the model takes them."""

    def describe_cell(self, batch: BatchT, row: int, error: NotLearnedError) -> str:
        """What of a row was not learned."""
        return error.subject or "it"

    # -- learning ------------------------------------------------------------------------------------------------

    @abstractmethod
    def count(self, batch: BatchT, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        """The statistics of rows, with a fair sample of them if corrections are derived from it."""

    def place(self, statistics: ModelStatistics, columns: Self) -> ModelStatistics:
        """Statistics over other ``columns``, rearranged to these."""
        return statistics

    def join(self, other: Self) -> Self:
        """The columns of both; an error if their statistics cannot be added."""
        return self

    def settle(self, statistics: ModelStatistics) -> tuple[Self, ModelStatistics]:
        """Drop columns that have lost their last cell."""
        return self, statistics

    def prune(self, statistics: ModelStatistics) -> ModelStatistics:
        """Drop what a sum of parts has beyond the declared limits."""
        return statistics

    def choose(self, statistics: ModelStatistics, batch: BatchT, group: Array, weight: Array | None) -> Self:
        """The parameters that only ``fit`` can choose, from the rows themselves."""
        return self

    def check_learned(self, statistics: ModelStatistics) -> None:
        """Raise an error or warn if ``fit`` has learned too little."""

    # -- answering -----------------------------------------------------------------------------------------------

    @abstractmethod
    def model(self, statistics: ModelStatistics) -> Any:
        """The model: log_prior() and log_joint(cells), and what calibration needs, if it is calibrated."""

    def open(self, statistics: ModelStatistics) -> OpenModel[Any] | None:
        """The model opened for single rows; None if a row would cost as much as all that was learned."""
        return None

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        """Why the statistics cannot belong to these columns and parameters; None if they can."""
        return None

    # -- the sample that corrections are derived from ------------------------------------------------------------

    @property
    def column_names(self) -> Sequence[Sequence[str]]:
        """The names of the columns of each block of cells."""
        raise NotImplementedError

    def keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        """Cells as a sample keeps them: texts as bags of tokens."""
        return list(cells)

    def calibrator(self) -> Calibrator:
        """How corrections are fitted, as declared."""
        raise NotImplementedError

    @property
    def memory(self) -> int:
        """The number of rows that are kept."""
        return choose_memory(self.parameters.memory, self.parameters.refine is True) if self.is_calibrated else 0

    @property
    def tokenizers(self) -> list[Tokenizer]:
        """The tokenizers of the texts among the columns."""
        return []

    @property
    def is_calibrated(self) -> bool:
        """Whether answers are corrected, if there are rows to derive corrections from."""
        return self.calibrates and bool(self.parameters.calibrate)

    def sample(
        self, cells: Sequence[Cells], classes: Array, group: Array, weight: Array | None, memory: int
    ) -> tuple[RowSample, Array]:
        """A fair sample of at most ``memory`` rows, and the position of each of them."""
        return RowSample.of(self.column_names, cells, classes, group, weight, memory, self.keep_cells)


def check_calibration(parameters: Parameters) -> None:
    """Raise an error for parameters of corrections that cannot be."""
    if parameters.calibrate not in ("loo", False):
        raise DataError(f"calibrate is {parameters.calibrate!r}; use 'loo' or False.")
    if parameters.memory is not None and not 0 <= parameters.memory < 1 << 31:
        raise DataError(f"memory is {parameters.memory!r}; use a number of rows from 0, or None.")
    if not parameters.refresh_after > 0:
        raise DataError(f"refresh_after is {parameters.refresh_after!r}; use a share of the rows above 0.")
    if parameters.refine not in ("auto", True, False):
        raise DataError(f"refine is {parameters.refine!r}; use 'auto', True or False.")


def warn_user(message: str) -> None:
    """Warn at the line that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("priory."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, PrioryWarning, stacklevel=level)
