"""SciPy's special functions, imported when the first of them is called: many answers need none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy


def _call_later(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(scipy.special, name)(*arguments, **options)

    return call


betaln = _call_later("betaln")
expit = _call_later("expit")
gammaln = _call_later("gammaln")
multigammaln = _call_later("multigammaln")
ndtr = _call_later("ndtr")
ndtri = _call_later("ndtri")
polygamma = _call_later("polygamma")
psi = _call_later("psi")
softmax = _call_later("softmax")
