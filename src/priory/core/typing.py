"""Types that the whole package shares."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import NDArray

Array = NDArray[Any]
ColumnKind = Literal["number", "label", "text", "empty"]  # what the cells of a column are read as
Label = str | int | float | bool  # the name of a class
